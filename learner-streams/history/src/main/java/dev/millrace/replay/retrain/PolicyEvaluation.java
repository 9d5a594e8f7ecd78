package dev.millrace.replay.retrain;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.weights.Weights;

/**
 * The run's task, to be tried with any weights: what the recorded batches cannot say. Used by one thread.
 */
public interface PolicyEvaluation {

    /**
     * The mean reward of a policy on prompts and draws that are the same every time.
     *
     * @param version that the weights stand for
     * @throws dev.millrace.policy.session.NonFiniteScoreException if the weights give no numbers
     */
    double meanReward(Weights weights, long version);

    /** Groups that these very weights sample, scored by them and batched without corrections; the same every time. */
    TrainingBatch onPolicy(Weights weights, long version);
}
