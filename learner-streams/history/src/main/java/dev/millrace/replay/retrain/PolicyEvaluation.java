package dev.millrace.replay.retrain;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.weights.Weights;

/** Evaluates weights on the run's task. Used by one thread. */
public interface PolicyEvaluation {

    /**
     * Mean reward on fixed prompts and draws.
     *
     * @throws dev.millrace.policy.session.NonFiniteScoreException for non-finite weights
     */
    double meanReward(Weights weights, long version);

    /** Groups sampled and scored by these weights, batched without corrections; deterministic. */
    TrainingBatch onPolicy(Weights weights, long version);
}
