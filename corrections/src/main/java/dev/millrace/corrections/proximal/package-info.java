/** Log-probs of the proximal policy without a forward pass: interpolated between behavior and current by version. */
package dev.millrace.corrections.proximal;
