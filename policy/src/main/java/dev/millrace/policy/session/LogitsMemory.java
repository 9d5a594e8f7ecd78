package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;

/**
 * How much memory may be taken by the logits of a micro-batch and by what is made of them: softmax, log-probs and their
 * gradients, all as wide as the vocabulary. Tokens whose logits do not fit go through the head in chunks, so that logits are
 * never there for a whole micro-batch.
 *
 * <p>The rounding of what is summed over tokens, the head's gradient, depends on it; log-probs do not, not by a bit.
 *
 * @param bytes at least 1; a few tokens go at once always
 */
public record LogitsMemory(long bytes) {
    /** Enough to chunk a vocabulary of tens of thousands without a slowdown. */
    public static final LogitsMemory DEFAULT = new LogitsMemory(256L << 20);

    private static final int FEWEST_ROWS = 4;
    /** Arrays of vocabulary width that exist at the same time. */
    private static final int SCORING_COPIES = 4;

    private static final int GRADIENT_COPIES = 7;
    /** One more for a split head, whose logits are concatenated and gradients split. */
    private static final int JOINED_COPIES = 1;

    public LogitsMemory {
        if (bytes < 1) {
            throw new IllegalArgumentException("bytes must be at least 1: " + bytes);
        }
    }

    /** Tokens per scoring chunk. */
    public int scoringRows(DecoderShape shape) {
        return rows(shape, SCORING_COPIES + joinedCopies(shape));
    }

    /** Tokens per gradient chunk. */
    public int gradientRows(DecoderShape shape) {
        return rows(shape, GRADIENT_COPIES + joinedCopies(shape));
    }

    private static int joinedCopies(DecoderShape shape) {
        return shape.head().isCut() ? JOINED_COPIES : 0;
    }

    private int rows(DecoderShape shape, int copies) {
        long fit = bytes / ((long) copies * Float.BYTES * shape.vocabSize());
        return (int) Math.max(FEWEST_ROWS, Math.min(Integer.MAX_VALUE / 2, fit));
    }
}
