package dev.millrace.learner.step;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.session.LogitsMemory;
import dev.millrace.policy.session.MicrobatchLimit;

/**
 * What a step is taken with, beside the algorithm.
 *
 * @param optimizer AdamW and its learning rate
 * @param tokensPerMicrobatch padded tokens that go through the gradient's graphs at once, at most
 * @param memoryMb memory that the gradient's way forward and back may take in all shards together, beside weights, gradients and the
 *     optimiser's state; so many sequences go at once as fit into a shard's part by the estimate, and one that does not fit alone is refused. 0 is 2048,
 *     or as much as the weights take in float32 where that is more
 * @param recompute whether the way back keeps each layer's input alone and goes forward through the layer again, which takes less
 *     memory and about a third more time; the bits of the gradient do not depend on it, but through what else fits into the memory
 * @param logitsMb memory that logits, softmax and their gradients may take in a shard; tokens whose logits do not fit go through
 *     the head in chunks, which decide the last bits of the weights
 * @param shards parts of a minibatch that are differentiated at the same time, each on a thread of its own; part of what
 *     decides the last bits of the weights
 */
public record StepConfig(
        OptimizerConfig optimizer, int tokensPerMicrobatch, int memoryMb, boolean recompute, int logitsMb, int shards) {
    private static final long LEAST_DEFAULT_BYTES = 2048L << 20;

    public StepConfig {
        atLeastOne("tokens_per_microbatch", tokensPerMicrobatch);
        if (memoryMb < 0) {
            throw new IllegalArgumentException(
                    "memory_mb must be at least 1, or 0 for what follows from the model: " + memoryMb);
        }
        atLeastOne("logits_mb", logitsMb);
        atLeastOne("shards", shards);
    }

    public static StepConfig defaults() {
        return new StepConfig(OptimizerConfig.defaults(), 4096, 0, false, 256, 2);
    }

    public StepConfig withOptimizer(OptimizerConfig other) {
        return new StepConfig(other, tokensPerMicrobatch, memoryMb, recompute, logitsMb, shards);
    }

    /** The same cut differently into what is differentiated at once. */
    public StepConfig withCut(int otherTokensPerMicrobatch, int otherShards) {
        return new StepConfig(optimizer, otherTokensPerMicrobatch, memoryMb, recompute, logitsMb, otherShards);
    }

    /** The bytes of {@code memory_mb}, for a model. */
    public long passBytes(DecoderShape shape) {
        return memoryMb > 0
                ? (long) memoryMb << 20
                : Math.max(LEAST_DEFAULT_BYTES, Math.multiplyExact(shape.parameterCount(), Float.BYTES));
    }

    /** What may go through a shard's graphs at once. */
    public MicrobatchLimit limit(DecoderShape shape) {
        return new MicrobatchLimit(tokensPerMicrobatch, Math.max(1, passBytes(shape) / shards));
    }

    /** The memory of logits as the engine takes it. */
    public LogitsMemory logits() {
        return new LogitsMemory((long) logitsMb << 20);
    }

    /** What the way back has of the way forward. */
    public Activations activations() {
        return recompute ? Activations.RECOMPUTED : Activations.KEPT;
    }

    private static void atLeastOne(String key, int value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }
}
