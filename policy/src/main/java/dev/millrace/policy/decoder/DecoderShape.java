package dev.millrace.policy.decoder;

import java.util.ArrayList;
import java.util.List;

/**
 * Sizes of a decoder as Llama, Qwen2, Qwen3 and Mistral are: RMSNorm, rotary positions, grouped-query attention, SwiGLU.
 *
 * <p>Everything that decides the graphs and the tensors is here; two equal shapes have interchangeable weights.
 *
 * @param vocabSize        token ids are {@code 0 .. vocabSize-1}
 * @param hiddenSize       width of the residual stream
 * @param layers           transformer blocks
 * @param heads            query heads
 * @param kvHeads          key/value heads; divides {@code heads} (query head h reads key head h / (heads/kvHeads))
 * @param headSize         width of one head; even, because rotary positions turn pairs
 * @param intermediateSize width of the SwiGLU layer; of no effect where there are experts, which have a width of their own
 * @param maxPositions     longest sequence, in tokens
 * @param ropeTheta        base of the rotary frequencies {@code theta^(-2i/headSize)}
 * @param rmsNormEps       added to the mean square before its root
 * @param tiedHead         whether the output head is the embedding matrix
 * @param qkvBias          whether query, key and value projections have a bias (Qwen2 does, Llama does not)
 * @param traits           in what it differs from the plain decoder
 */
public record DecoderShape(
        int vocabSize,
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
        DecoderTraits traits) {

    public DecoderShape {
        atLeast(2, vocabSize, "vocabSize");
        atLeast(1, hiddenSize, "hiddenSize");
        atLeast(1, layers, "layers");
        atLeast(1, heads, "heads");
        atLeast(1, kvHeads, "kvHeads");
        atLeast(2, headSize, "headSize");
        atLeast(1, intermediateSize, "intermediateSize");
        atLeast(2, maxPositions, "maxPositions");
        if (heads % kvHeads != 0) {
            throw new IllegalArgumentException(
                    "kvHeads must divide heads, so that each key head serves as many query heads:" + " heads=" + heads
                            + ", kvHeads=" + kvHeads);
        }
        if (headSize % 2 != 0) {
            throw new IllegalArgumentException(
                    "headSize must be even, rotary positions turn pairs: headSize=" + headSize);
        }
        if (!(ropeTheta > 1 && ropeTheta < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("ropeTheta must be finite and above 1: ropeTheta=" + ropeTheta);
        }
        if (!(rmsNormEps > 0 && rmsNormEps < 1)) {
            throw new IllegalArgumentException("rmsNormEps must be above 0 and below 1: rmsNormEps=" + rmsNormEps);
        }
        if (traits.fullLayers() > layers) {
            throw new IllegalArgumentException(
                    "fullLayers must be at most layers=" + layers + ": fullLayers=" + traits.fullLayers());
        }
    }

    /** The plain decoder. */
    public DecoderShape(
            int vocabSize,
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
            boolean qkvBias) {
        this(
                vocabSize,
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
                DecoderTraits.PLAIN);
    }

    private static void atLeast(int bound, int value, String name) {
        if (value < bound) {
            throw new IllegalArgumentException(name + " must be at least " + bound + ": " + name + "=" + value);
        }
    }

    /** Query heads that share one key/value head. */
    public int headsPerKvHead() {
        return heads / kvHeads;
    }

    /** Every tensor of the decoder, embedding first, head last: the order of all iterations over weights. */
    public List<TensorSpec> tensors() {
        List<TensorSpec> specs = new ArrayList<>();
        specs.add(TensorSpec.of(TensorNames.EMBEDDING, vocabSize, hiddenSize));
        long queryWidth = (long) heads * headSize;
        long keyWidth = (long) kvHeads * headSize;
        for (int layer = 0; layer < layers; layer++) {
            specs.add(TensorSpec.of(TensorNames.inputNorm(layer), hiddenSize));
            linear(specs, TensorNames.query(layer), queryWidth, hiddenSize, qkvBias);
            linear(specs, TensorNames.key(layer), keyWidth, hiddenSize, qkvBias);
            linear(specs, TensorNames.value(layer), keyWidth, hiddenSize, qkvBias);
            if (traits.queryKeyNorm()) {
                specs.add(TensorSpec.of(TensorNames.queryNorm(layer), headSize));
                specs.add(TensorSpec.of(TensorNames.keyNorm(layer), headSize));
            }
            linear(specs, TensorNames.attentionOutput(layer), hiddenSize, queryWidth, traits.outputBias());
            specs.add(TensorSpec.of(TensorNames.postAttentionNorm(layer), hiddenSize));
            if (traits.experts().present()) {
                addExperts(specs, layer);
            } else {
                linear(specs, TensorNames.gate(layer), intermediateSize, hiddenSize, traits.mlpBias());
                linear(specs, TensorNames.up(layer), intermediateSize, hiddenSize, traits.mlpBias());
                linear(specs, TensorNames.down(layer), hiddenSize, intermediateSize, traits.mlpBias());
            }
        }
        specs.add(TensorSpec.of(TensorNames.FINAL_NORM, hiddenSize));
        if (!tiedHead) {
            specs.add(TensorSpec.of(TensorNames.HEAD, vocabSize, hiddenSize));
        }
        return List.copyOf(specs);
    }

    private void addExperts(List<TensorSpec> specs, int layer) {
        Experts experts = traits.experts();
        specs.add(TensorSpec.of(TensorNames.router(layer), experts.count(), hiddenSize));
        for (int expert = 0; expert < experts.count(); expert++) {
            String prefix = TensorNames.expert(layer, expert);
            linear(specs, prefix + "gate_proj", experts.width(), hiddenSize, false);
            linear(specs, prefix + "up_proj", experts.width(), hiddenSize, false);
            linear(specs, prefix + "down_proj", hiddenSize, experts.width(), false);
        }
    }

    private static void linear(List<TensorSpec> specs, String name, long out, long in, boolean biased) {
        specs.add(TensorSpec.of(name + ".weight", out, in));
        if (biased) {
            specs.add(TensorSpec.of(name + ".bias", out));
        }
    }

    /** Number of float32 parameters; a tied head is counted once. */
    public long parameterCount() {
        return tensors().stream().mapToLong(TensorSpec::elementCount).sum();
    }
}
