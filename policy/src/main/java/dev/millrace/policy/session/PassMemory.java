package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.HeadGradient;
import dev.millrace.policy.decoder.LayerGradient;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.SequenceGraph.Vocabulary;
import java.util.Map;
import java.util.Optional;

/**
 * Estimates the memory of a micro-batch's forward and backward pass, without weights, gradients and the process itself,
 * from the nodes of the graphs that run. Immutable.
 */
public final class PassMemory {
    private final DecoderShape shape;
    private final LayerGradient layer;
    private final HeadGradient head;
    private final LogitsMemory logits;

    PassMemory(DecoderShape shape, LayerGradient layer, HeadGradient head, LogitsMemory logits) {
        this.shape = shape;
        this.layer = layer;
        this.head = head;
        this.logits = logits;
    }

    /** Of a pass that is not compiled. */
    public static PassMemory of(
            DecoderShape shape, Optional<LoraShape> lora, Activations activations, LogitsMemory logits) {
        return new PassMemory(
                shape,
                LayerGradient.of(shape, lora, activations, false),
                HeadGradient.of(shape, lora.isEmpty(), Vocabulary.WHOLE, false),
                logits);
    }

    /**
     * Returns the most bytes that this number of sequences takes if all their tokens are scored.
     *
     * @param length tokens of each; padded as a pass pads them
     */
    public long bytes(int sequences, int length) {
        int padded = MicroBatch.paddedLength(length);
        long tokens = Math.multiplyExact((long) sequences, padded);
        long hidden = tokens * shape.hiddenSize() * Float.BYTES;
        long rows = Math.min(tokens, logits.gradientRows(shape));
        Map<String, Long> lengths =
                LayerGradient.lengths(shape, Map.of("B", (long) sequences, "L", (long) padded, "S", Math.max(2, rows)));
        long kept = hidden + shape.layers() * layer.forward().outputBytes(lengths);
        long forward =
                kept - layer.forward().outputBytes(lengths) + layer.forward().peakBytes(lengths, name -> false);
        long heads = kept + hidden + head.graph().peakBytes(lengths, PassMemory::isSum) + rows * shape.hiddenSize() * 4;
        long backward = kept + hidden + layer.backward().peakBytes(lengths, PassMemory::isSum);
        long tables = (long) padded * (padded + shape.headSize()) * Float.BYTES;
        return tables + Math.max(forward, Math.max(heads, backward));
    }

    /**
     * Returns how many sequences go at once.
     *
     * @param length tokens of each
     * @throws PassMemoryException if one takes more memory than there may be
     */
    public int sequences(int length, MicrobatchLimit limit) {
        return limit.rows(this::bytes).sequences(MicroBatch.paddedLength(length));
    }

    /** Returns whether an output is added up in the gradient's own memory. */
    private static boolean isSum(String output) {
        return output.startsWith("gradient.model.")
                || output.startsWith("gradient.lm_head.")
                || output.startsWith("gradient.value_head.");
    }
}
