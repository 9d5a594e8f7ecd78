package dev.millrace.experiments;

import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.weights.Weights;

/**
 * A policy with the optimiser's state that goes with it; not to be written to.
 *
 * @param batches trained on so far, from random weights: the ordinal of the next batch of prompts
 */
record TrainedPolicy(Weights weights, AdamW.State optimizer, long batches) {

    /** A copy of what goes on being trained. */
    static TrainedPolicy copyOf(Weights weights, AdamW optimizer, long batches) {
        AdamW.State state = optimizer.state();
        return new TrainedPolicy(
                weights.copy(),
                new AdamW.State(
                        state.steps(), state.first().copy(), state.second().copy()),
                batches);
    }
}
