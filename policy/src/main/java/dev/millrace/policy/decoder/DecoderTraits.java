package dev.millrace.policy.decoder;

/**
 * Differences of a decoder from the plain one, by family.
 *
 * @param ropeScaling   how rotary frequencies were stretched
 * @param outputBias bias of the attention output (Llama, Qwen3 with {@code attention_bias})
 * @param mlpBias feed-forward biases (Llama with {@code mlp_bias})
 * @param queryKeyNorm norm of each head's query and key before RoPE (Qwen3)
 * @param slidingWindow tokens that a windowed layer sees, the current one included; 0 for all
 * @param fullLayers first layers without the window (Qwen2, Qwen3)
 * @param experts       replace every layer's SwiGLU (Qwen3's mixtures)
 */
public record DecoderTraits(
        RopeScaling ropeScaling,
        boolean outputBias,
        boolean mlpBias,
        boolean queryKeyNorm,
        int slidingWindow,
        int fullLayers,
        Experts experts) {
    /** Plain positions, no further biases, no norms in the attention, no window. */
    public static final DecoderTraits PLAIN = new DecoderTraits(new RopeScaling.None(), false, false, false, 0, 0);

    public DecoderTraits {
        if (slidingWindow < 0) {
            throw new IllegalArgumentException(
                    "slidingWindow must be at least 1 token, or 0 for none: slidingWindow=" + slidingWindow);
        }
        if (fullLayers < 0 || fullLayers > 0 && slidingWindow == 0) {
            throw new IllegalArgumentException(
                    "fullLayers must be at least 0, and 0 where there is no window: fullLayers=" + fullLayers
                            + ", slidingWindow=" + slidingWindow);
        }
        if (mlpBias && experts.present()) {
            throw new IllegalArgumentException("experts have no biases: mlpBias=true, experts=" + experts.count());
        }
    }

    /** One SwiGLU in every layer. */
    public DecoderTraits(
            RopeScaling ropeScaling,
            boolean outputBias,
            boolean mlpBias,
            boolean queryKeyNorm,
            int slidingWindow,
            int fullLayers) {
        this(ropeScaling, outputBias, mlpBias, queryKeyNorm, slidingWindow, fullLayers, Experts.NONE);
    }

    /** Returns whether a token of this layer sees only the tokens within the sliding window. */
    public boolean isWindowed(int layer) {
        return slidingWindow > 0 && layer >= fullLayers;
    }
}
