/**
 * A rollout correction as one operation: weights, rejection and metrics in a single walk over the tokens, configured
 * with verl's names.
 *
 * <p>The walk hands blocks of trained tokens to passes. Every pass keeps its numbers per sequence and adds them up in
 * sequence order at the end, so results do not depend on the number of workers.
 */
@NullMarked
package dev.millrace.corrections.rollout;

import org.jspecify.annotations.NullMarked;
