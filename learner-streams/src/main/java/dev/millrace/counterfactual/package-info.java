/**
 * What learning would have been: the recorded batches of a run, learnt from again, by its own settings or by others.
 *
 * <p>A step is the learner's own code ({@link dev.millrace.learner.step.BatchOptimizer}) on the weights and the optimiser's
 * state that the log holds. Under the run's own settings it gives the recorded weights bit for bit, which is the proof that
 * the rest can be trusted. Nothing is written to the run.
 *
 * <p>The rollouts stay the recorded ones: what another policy would have sampled is not on the log. So a re-train says where
 * these batches would have led, and {@link dev.millrace.counterfactual.TaskTrials} what the policy that came out is worth.
 */
package dev.millrace.counterfactual;
