package dev.millrace.learner.step;

/**
 * How a batch becomes optimiser steps.
 *
 * @param optimizer           AdamW and its learning rate
 * @param objective           the loss
 * @param entropy             the entropy bonus
 * @param minibatches         optimiser steps per pass over a batch; members are cut into so many stretches of equal length
 * @param epochs              passes over a batch
 * @param tokensPerMicrobatch padded tokens that go through the gradient graph at once: bounds memory
 * @param shards              parts of a minibatch that are differentiated at the same time, each on a thread of its own;
 *     part of what decides the last bits of the weights
 */
public record StepConfig(
        OptimizerConfig optimizer, ObjectiveConfig objective, EntropyConfig entropy, int minibatches, int epochs,
        int tokensPerMicrobatch, int shards) {

    public StepConfig {
        atLeastOne("minibatches", minibatches);
        atLeastOne("epochs", epochs);
        atLeastOne("tokens_per_microbatch", tokensPerMicrobatch);
        atLeastOne("shards", shards);
        if (objective.kind() == ObjectiveConfig.Kind.REINFORCE && (minibatches > 1 || epochs > 1)) {
            throw new IllegalArgumentException((epochs > 1 ? "epochs" : "minibatches")
                + " above 1 needs an objective with a trust region, since later steps train on an older policy's tokens:"
                + " kind=reinforce, minibatches=" + minibatches + ", epochs=" + epochs + "; choose kind=decoupled_ppo");
        }
    }

    public static StepConfig defaults() {
        return new StepConfig(
            OptimizerConfig.defaults(), ObjectiveConfig.defaults(), EntropyConfig.defaults(), 1, 1, 4096, 2);
    }

    private static void atLeastOne(String key, int value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }
}
