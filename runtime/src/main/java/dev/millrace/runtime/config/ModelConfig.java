package dev.millrace.runtime.config;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.TensorSpec;

/**
 * The decoder to train, apart from its vocabulary, which is the task's.
 *
 * @param checkpoint Hugging Face directory to start from; its {@code config.json} sets the keys below; empty for random
 *     weights
 * @param hiddenSize width of the residual stream
 * @param layers transformer blocks
 * @param heads query heads
 * @param kvHeads key and value heads, a divisor of {@code heads}
 * @param headSize width of a head, even
 * @param intermediateSize feed-forward width
 * @param maxPositions longest sequence
 * @param ropeTheta base of the rotary frequencies
 * @param rmsNormEps added to the mean square
 * @param tiedHead output layer shares the embedding
 * @param qkvBias query, key and value biases
 * @param traits differences from the plain decoder, by family
 * @param maxTensorElements most elements per tensor; a larger matrix is split by rows
 */
public record ModelConfig(
        String checkpoint,
        int hiddenSize,
        int layers,
        int heads,
        int kvHeads,
        int headSize,
        int intermediateSize,
        int maxPositions,
        double ropeTheta,
        double rmsNormEps,
        boolean tiedHead,
        boolean qkvBias,
        DecoderTraits traits,
        int maxTensorElements) {

    /** Small enough for a CPU: 2 layers of width 64, 83 thousand parameters. */
    public static ModelConfig defaults() {
        return new ModelConfig(
                "", 64, 2, 4, 4, 16, 128, 64, 100.0, 1e-6, false, false, DecoderTraits.PLAIN, TensorSpec.MOST_ELEMENTS);
    }

    /** That of a checkpoint. */
    static ModelConfig of(DecoderShape shape, String checkpoint) {
        return new ModelConfig(
                checkpoint,
                shape.hiddenSize(),
                shape.layers(),
                shape.heads(),
                shape.kvHeads(),
                shape.headSize(),
                shape.intermediateSize(),
                shape.maxPositions(),
                shape.ropeTheta(),
                shape.rmsNormEps(),
                shape.tiedHead(),
                shape.qkvBias(),
                shape.traits(),
                shape.maxTensorElements());
    }

    public DecoderShape shape(int vocabularySize) {
        return new DecoderShape(
                vocabularySize,
                hiddenSize,
                layers,
                heads,
                kvHeads,
                headSize,
                intermediateSize,
                maxPositions,
                ropeTheta,
                rmsNormEps,
                tiedHead,
                qkvBias,
                traits,
                maxTensorElements,
                false);
    }
}
