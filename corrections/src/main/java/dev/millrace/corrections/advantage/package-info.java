/**
 * Advantages: how much better than expected a sequence, or a token of it, turned out.
 *
 * <p>Estimators with one reward per sequence return one advantage per sequence, which each of its trained
 * tokens has. Estimators with rewards per
 * token return an {@link dev.millrace.corrections.advantage.AdvantagesAndReturns}. Promises:
 * <ol>
 *   <li>Groups are those of the batch; a batch without groups has one sequence per group.
 *   <li>Rewards must be finite, and are refused with their sequence otherwise. A sequence without trained tokens still
 *       counts in its group's baseline: its reward was earned by the same prompt.
 *   <li>Values at context tokens are never read and the results there are 0, except under an option whose name says
 *       <i>reference</i>.
 *   <li>Arithmetic is in {@code double}; per-token results are {@code float}.
 * </ol>
 */
@NullMarked
package dev.millrace.corrections.advantage;

import org.jspecify.annotations.NullMarked;
