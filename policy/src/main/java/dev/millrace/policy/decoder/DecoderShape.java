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
 * @param kvHeads          key/value heads; divides {@code heads} (query head h reads key head h / (heads/kvHeads))
 * @param headSize         width of one head; even, because rotary positions turn pairs
 * @param intermediateSize width of the SwiGLU layer; unused with experts, which have their own width
 * @param maxPositions     longest sequence, in tokens
 * @param ropeTheta        base of the rotary frequencies {@code theta^(-2i/headSize)}
 * @param rmsNormEps       added to the mean square before its root
 * @param tiedHead         whether the output head is the embedding matrix
 * @param qkvBias          whether query, key and value projections have a bias (Qwen2 does, Llama does not)
 * @param traits           in what it differs from the plain decoder
 * @param maxTensorElements most elements per tensor: a larger matrix is split by rows ({@link WholeTensor}). Always
 * {@link TensorSpec#MOST_ELEMENTS} if nothing is split, so that an ineffective limit gives an equal shape
 * @param valueHead whether a critic's head reads the same hidden states as the output head
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
        DecoderTraits traits,
        int maxTensorElements,
        boolean valueHead) {

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
                    "kvHeads must divide heads, so that each key head serves as many query heads: heads=" + heads
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
        if (maxTensorElements < 1 || maxTensorElements > TensorSpec.MOST_ELEMENTS) {
            throw new IllegalArgumentException("max_tensor_elements must be at least 1 and at most "
                    + TensorSpec.MOST_ELEMENTS + ": " + maxTensorElements);
        }
        if (largest(vocabSize, hiddenSize, (long) heads * headSize, intermediateSize, traits.experts())
                <= maxTensorElements) {
            maxTensorElements = TensorSpec.MOST_ELEMENTS;
        }
    }

    /** The plain decoder, whose tensors are split only if no buffer holds them. */
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
                DecoderTraits.PLAIN,
                TensorSpec.MOST_ELEMENTS,
                false);
    }

    public DecoderShape with(DecoderTraits others) {
        return with(others, maxTensorElements, valueHead);
    }

    public DecoderShape withValueHead(boolean present) {
        return with(traits, maxTensorElements, present);
    }

    /**
     * Returns the element count of the largest matrix. One axis of every matrix has the width of the residual stream.
     */
    private static double largest(
            int vocabSize, int hiddenSize, long queryWidth, int intermediateSize, Experts experts) {
        long others = experts.present() ? Math.max(experts.width(), experts.count()) : intermediateSize;
        return (double) hiddenSize * Math.max(vocabSize, Math.max(queryWidth, others));
    }

    /** Returns whether a matrix is split into several tensors. */
    public boolean cutsTensors() {
        return largest(vocabSize, hiddenSize, (long) heads * headSize, intermediateSize, traits.experts())
                > maxTensorElements;
    }

    /** Returns the same decoder with tensors of at most {@code mostElements} elements. */
    public DecoderShape within(int mostElements) {
        return with(traits, mostElements, valueHead);
    }

    private DecoderShape with(DecoderTraits others, int mostElements, boolean withValues) {
        return new DecoderShape(
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
                others,
                mostElements,
                withValues);
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

    /**
     * Every tensor of the decoder, embedding first, heads last: the order of all iterations over weights.
     *
     * @throws IllegalArgumentException if a matrix cannot be split into tensors of {@link #maxTensorElements}
     */
    public List<TensorSpec> tensors() {
        return wholes().stream().flatMap(whole -> whole.pieces().stream()).toList();
    }

    /** The same tensors as in equations and files: each whole once, with its pieces. */
    public List<WholeTensor> wholes() {
        List<WholeTensor> wholes = new ArrayList<>();
        wholes.add(embedding());
        long queryWidth = (long) heads * headSize;
        long keyWidth = (long) kvHeads * headSize;
        for (int layer = 0; layer < layers; layer++) {
            wholes.add(whole(TensorNames.inputNorm(layer), hiddenSize));
            linear(wholes, TensorNames.query(layer), queryWidth, hiddenSize, qkvBias);
            linear(wholes, TensorNames.key(layer), keyWidth, hiddenSize, qkvBias);
            linear(wholes, TensorNames.value(layer), keyWidth, hiddenSize, qkvBias);
            if (traits.queryKeyNorm()) {
                wholes.add(whole(TensorNames.queryNorm(layer), headSize));
                wholes.add(whole(TensorNames.keyNorm(layer), headSize));
            }
            linear(wholes, TensorNames.attentionOutput(layer), hiddenSize, queryWidth, traits.outputBias());
            wholes.add(whole(TensorNames.postAttentionNorm(layer), hiddenSize));
            if (traits.experts().present()) {
                addExperts(wholes, layer);
            } else {
                linear(wholes, TensorNames.gate(layer), intermediateSize, hiddenSize, traits.mlpBias());
                linear(wholes, TensorNames.up(layer), intermediateSize, hiddenSize, traits.mlpBias());
                linear(wholes, TensorNames.down(layer), hiddenSize, intermediateSize, traits.mlpBias());
            }
        }
        wholes.add(whole(TensorNames.FINAL_NORM, hiddenSize));
        if (!tiedHead) {
            wholes.add(head());
        }
        if (valueHead) {
            wholes.add(whole(TensorNames.VALUE_WEIGHT, hiddenSize));
            wholes.add(whole(TensorNames.VALUE_BIAS, 1));
        }
        return List.copyOf(wholes);
    }

    /** The embedding, [vocabulary, hidden]. */
    public WholeTensor embedding() {
        return whole(TensorNames.EMBEDDING, vocabSize, hiddenSize);
    }

    /** The output head, [vocabulary, hidden]: the embedding if tied. */
    public WholeTensor head() {
        return tiedHead ? embedding() : whole(TensorNames.HEAD, vocabSize, hiddenSize);
    }

    private void addExperts(List<WholeTensor> wholes, int layer) {
        Experts experts = traits.experts();
        wholes.add(whole(TensorNames.router(layer), experts.count(), hiddenSize));
        for (int expert = 0; expert < experts.count(); expert++) {
            String prefix = TensorNames.expert(layer, expert);
            linear(wholes, prefix + "gate_proj", experts.width(), hiddenSize, false);
            linear(wholes, prefix + "up_proj", experts.width(), hiddenSize, false);
            linear(wholes, prefix + "down_proj", hiddenSize, experts.width(), false);
        }
    }

    private void linear(List<WholeTensor> wholes, String name, long out, long in, boolean biased) {
        wholes.add(whole(name + ".weight", out, in));
        if (biased) {
            wholes.add(whole(name + ".bias", out));
        }
    }

    private WholeTensor whole(String name, long... dims) {
        return WholeTensor.of(maxTensorElements, name, dims);
    }

    /** Number of float32 parameters; a tied head is counted once. */
    public long parameterCount() {
        return wholes().stream().mapToLong(WholeTensor::elementCount).sum();
    }
}
