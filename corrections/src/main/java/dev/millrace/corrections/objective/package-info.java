/**
 * Objectives: from log-probs to a loss and its derivative with respect to every log-prob.
 *
 * <p>An {@link dev.millrace.corrections.objective.Objective} knows one formula; an
 * {@link dev.millrace.corrections.objective.LossAggregation} knows what the per-token losses are divided by. Promises:
 * <ol>
 *   <li>Values are <em>losses</em>: they are minimised. {@code gradient()[t]} is dLoss/d log π(y_t), the aggregation's
 *       denominator included, so a learner feeds it to the gradient graph unchanged.
 *   <li>Quantities that a paper detaches (stop-gradient) are held constant in the derivative: importance weights
 *       always; clipped or truncated ratios where the class says so.
 *   <li>The gradient is 0 at context tokens, and no value at a context token is read.
 *   <li>A ratio is the exponential of a log-prob difference. Objectives that bound it to ±20, as verl does, have a zero
 *       derivative beyond and say so.
 *   <li>Importance weights multiply the per-token loss after clipping, are never negative, and are not differentiated.
 * </ol>
 */
@NullMarked
package dev.millrace.corrections.objective;

import org.jspecify.annotations.NullMarked;
