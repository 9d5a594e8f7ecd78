package dev.millrace.policy.session;

import org.jspecify.annotations.Nullable;

/**
 * Keys and values of the first tokens of a sequence, copied from a {@link DecodeSession}. A session of the same shape
 * can resume from them, bit for bit like the first one, since nothing is recomputed. Holds memory of its own.
 * Immutable.
 */
public final class HeldPrefix {
    private final int tokens;
    private final float[][] parts;
    private final @Nullable RoutedExperts routing;

    /**
     * @param parts of each layer keys and then values, [kvHeads, tokens, headSize]
     * @param routing of the same tokens; null for a model without experts
     */
    HeldPrefix(int tokens, float[][] parts, @Nullable RoutedExperts routing) {
        this.tokens = tokens;
        this.parts = parts;
        this.routing = routing;
    }

    public int tokens() {
        return tokens;
    }

    float[][] parts() {
        return parts;
    }

    @Nullable
    RoutedExperts routing() {
        return routing;
    }
}
