package dev.millrace.policy.decoder;

/**
 * A mixture of experts that replaces each layer's SwiGLU with many small ones. A router chooses a few of them for every
 * token, as in Qwen3:
 *
 * <pre>
 *   p = softmax(router h)     S = the {@code perToken} experts of largest p     w_e = p_e, or p_e / sum of p over S
 *   out = sum over e in S of w_e down_e(silu(gate_e h) * up_e h)
 * </pre>
 *
 * @param count experts per layer, at most 128
 * @param perToken experts per token
 * @param width width of an expert's SwiGLU
 * @param normalised normalise a token's expert weights to sum 1
 */
public record Experts(int count, int perToken, int width, boolean normalised) {
    public static final int MOST = 128;

    /** One SwiGLU for every token, no router. */
    public static final Experts NONE = new Experts(0, 0, 0, false);

    public Experts {
        boolean isNone = count == 0 && perToken == 0 && width == 0 && !normalised;
        if (!isNone && (count < 2 || count > MOST)) {
            throw new IllegalArgumentException("experts must be at least 2 and at most " + MOST + ": experts=" + count);
        }
        if (!isNone && (perToken < 1 || perToken > count)) {
            throw new IllegalArgumentException(
                    "experts of a token must be at least 1 and at most " + count + ": perToken=" + perToken);
        }
        if (!isNone && width < 1) {
            throw new IllegalArgumentException("an expert's width must be at least 1: width=" + width);
        }
    }

    public boolean present() {
        return count > 0;
    }
}
