/**
 * Rollout corrections by name.
 */
@NullMarked
package dev.millrace.corrections.preset;

import org.jspecify.annotations.NullMarked;
