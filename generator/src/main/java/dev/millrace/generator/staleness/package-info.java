/**
 * Releases prompts, so that generation stays at most eta versions ahead of training.
 *
 * <p>Promises: requests come in the order of their ordinals, even across crashes; the gate is
 * {@code floor((N - C - 1) / B) <= eta} over samples that are under way by name; only what was released and is not settled can be
 * settled, and only once; what was settled and what was released is committed in one transaction, so both are exact after a
 * restart.
 */
@NullMarked
package dev.millrace.generator.staleness;

import org.jspecify.annotations.NullMarked;
