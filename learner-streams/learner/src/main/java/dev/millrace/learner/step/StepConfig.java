package dev.millrace.learner.step;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.session.LogitsMemory;
import dev.millrace.policy.session.MicrobatchLimit;

/**
 * Settings of a step in addition to the algorithm.
 *
 * @param optimizer AdamW and its learning rate
 * @param tokensPerMicrobatch most padded tokens per microbatch
 * @param memoryMb MiB for activations of all shards; a sequence that does not fit alone is refused; 0 is the larger of
 *     2048 and the f32 weights
 * @param recompute activation checkpointing per layer: less memory, about a third more time
 * @param logitsMb MiB per shard for logits and their gradients; the rest goes in chunks; affects the last bits
 * @param shards parallel parts of a minibatch, a thread each; affects the last bits
 */
public record StepConfig(
        OptimizerConfig optimizer, int tokensPerMicrobatch, int memoryMb, boolean recompute, int logitsMb, int shards) {
    private static final long LEAST_DEFAULT_BYTES = 2048L << 20;

    public StepConfig {
        atLeastOne("tokens_per_microbatch", tokensPerMicrobatch);
        if (memoryMb < 0) {
            throw new IllegalArgumentException(
                    "memory_mb must be at least 1, or 0 to derive it from the model: " + memoryMb);
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
