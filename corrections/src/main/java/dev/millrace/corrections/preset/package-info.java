/**
 * Rollout corrections by name.
 */
package dev.millrace.corrections.preset;
