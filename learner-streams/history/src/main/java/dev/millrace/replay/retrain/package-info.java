/**
 * What learning would have been: the recorded batches of a run, learnt from again, by its own settings or by others.
 *
 * <p>A step is the learner's own code ({@link dev.millrace.learner.step.BatchOptimizer}) on the weights and the optimiser's
 * state that the log holds. Under the run's own settings it gives the recorded weights bit for bit, which is the proof that
 * the rest can be trusted. Nothing is written to the run.
 *
 * <p>What another policy would have sampled is not on the log. So either the rollouts stay the recorded ones, and a re-train says
 * where these batches would have led; or each course samples its own in their place
 * ({@link dev.millrace.replay.retrain.FreshRollouts}), which takes the run's environments, and it says where the run would have
 * gone. {@link dev.millrace.replay.retrain.PolicyEvaluation} says what the policy that comes out is worth.
 */
@NullMarked
package dev.millrace.replay.retrain;

import org.jspecify.annotations.NullMarked;
