package dev.millrace.policy.session;

/**
 * Size limit of a gradient micro-batch.
 *
 * @param tokens padded tokens at most; one longer sequence goes alone
 * @param bytes  of memory at most, by the estimate of {@link PassMemory}; a sequence that does not fit alone is refused
 */
public record MicrobatchLimit(int tokens, long bytes) {
    /** Without a bound on memory. */
    public static final long ANY_MEMORY = Long.MAX_VALUE;

    public MicrobatchLimit {
        if (tokens < 1) {
            throw new IllegalArgumentException("tokenBudget must be at least 1: tokenBudget=" + tokens);
        }
        if (bytes < 1) {
            throw new IllegalArgumentException("bytes must be at least 1: bytes=" + bytes);
        }
    }

    /** By tokens alone. */
    public static MicrobatchLimit ofTokens(int tokens) {
        return new MicrobatchLimit(tokens, ANY_MEMORY);
    }

    RowLimit rows(PassBytes estimate) {
        RowLimit byTokens = RowLimit.tokens(tokens);
        return bytes == ANY_MEMORY ? byTokens : new RowLimit.ByMemory(byTokens, estimate, bytes);
    }
}
