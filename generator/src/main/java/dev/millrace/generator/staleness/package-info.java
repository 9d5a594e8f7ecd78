/**
 * Releases prompts, so that generation stays at most eta versions ahead of training.
 *
 * <p>Promises: requests come in the order of their ordinals and none comes twice, whatever is killed when; the gate is
 * {@code floor((N - C - 1) / B) <= eta} with samples that were lost given back; what was lost and what was released is
 * committed in one transaction, so both are exact after a restart.
 */
@NullMarked
package dev.millrace.generator.staleness;

import org.jspecify.annotations.NullMarked;
