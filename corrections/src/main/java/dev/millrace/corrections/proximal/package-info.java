/** Log-probs of the proximal policy without a forward pass: interpolated between behavior and current by version. */
@NullMarked
package dev.millrace.corrections.proximal;

import org.jspecify.annotations.NullMarked;
