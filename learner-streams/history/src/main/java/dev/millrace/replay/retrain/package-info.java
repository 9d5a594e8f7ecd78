/**
 * Relearns from the recorded batches of a run, under its own settings or others.
 *
 * <p>A step is the learner's own code ({@link dev.millrace.learner.step.BatchOptimizer}) on the weights and the
 * optimizer's state on the log. Under the run's own settings it reproduces the recorded weights bit for bit, which
 * validates the other results. Nothing is written to the run.
 *
 * <p>The log does not have the rollouts of another policy. A re-train therefore uses the recorded rollouts, and shows
 * where these batches would have led; or each variant samples its own ({@link
 * dev.millrace.replay.retrain.FreshRollouts}), which needs the run's environments and shows where the run would have
 * gone. {@link dev.millrace.replay.retrain.PolicyEvaluation} evaluates the resulting policy.
 */
@NullMarked
package dev.millrace.replay.retrain;

import org.jspecify.annotations.NullMarked;
