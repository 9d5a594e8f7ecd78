/**
 * Rollouts meet their scores.
 *
 * <p>What holds between the classes here:
 * <ol>
 *   <li>Rollouts, scores and everything remembered of them are of one partition; nobody else touches them.
 *   <li>A rollout that was accepted leaves exactly once: joined, or with an outcome, or as a dead letter.
 *   <li>A payload is never written to a changelog; what waits is known by its place on the log.
 *   <li>The deadline of a wait is counted in activity ({@link dev.millrace.topology.state.ActivityClock}), and an
 *       expiry comes before the record that shows it.
 *   <li>A score belongs to one record of a rollout, not to its name: a repetition's score is never used for the original.
 * </ol>
 */
@NullMarked
package dev.millrace.topology.join;

import org.jspecify.annotations.NullMarked;
