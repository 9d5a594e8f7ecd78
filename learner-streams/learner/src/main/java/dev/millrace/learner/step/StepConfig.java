package dev.millrace.learner.step;

import dev.millrace.policy.session.LogitsMemory;

/**
 * What a step is taken with, beside the algorithm.
 *
 * @param optimizer AdamW and its learning rate
 * @param tokensPerMicrobatch padded tokens that go through the gradient graph at once: bounds memory
 * @param logitsMb memory that logits, softmax and their gradients may take in a shard; tokens whose logits do not fit go through
 *     the head in chunks, which decide the last bits of the weights
 * @param shards parts of a minibatch that are differentiated at the same time, each on a thread of its own; part of what
 *     decides the last bits of the weights
 */
public record StepConfig(OptimizerConfig optimizer, int tokensPerMicrobatch, int logitsMb, int shards) {

    public StepConfig {
        atLeastOne("tokens_per_microbatch", tokensPerMicrobatch);
        atLeastOne("logits_mb", logitsMb);
        atLeastOne("shards", shards);
    }

    public static StepConfig defaults() {
        return new StepConfig(OptimizerConfig.defaults(), 4096, 256, 2);
    }

    public StepConfig withOptimizer(OptimizerConfig other) {
        return new StepConfig(other, tokensPerMicrobatch, logitsMb, shards);
    }

    /** The same cut differently into what is differentiated at once. */
    public StepConfig withCut(int otherTokensPerMicrobatch, int otherShards) {
        return new StepConfig(optimizer, otherTokensPerMicrobatch, logitsMb, otherShards);
    }

    /** The memory of logits as the engine takes it. */
    LogitsMemory logits() {
        return new LogitsMemory((long) logitsMb << 20);
    }

    private static void atLeastOne(String key, int value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }
}
