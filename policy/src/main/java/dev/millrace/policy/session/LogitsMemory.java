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
    /** As much as a model with a vocabulary of tens of thousands needs to lose nothing by its chunks. */
    public static final LogitsMemory DEFAULT = new LogitsMemory(256L << 20);

    private static final int FEWEST_ROWS = 4;
    /** Arrays as wide as the vocabulary that are alive at once. */
    private static final int SCORING_COPIES = 4;

    private static final int GRADIENT_COPIES = 7;
    /** One more where a head lies in several tensors, whose logits are put together, and what flows into them taken apart. */
    private static final int JOINED_COPIES = 1;

    public LogitsMemory {
        if (bytes < 1) {
            throw new IllegalArgumentException("bytes must be at least 1: " + bytes);
        }
    }

    /** Tokens whose log-probs are found at once. */
    public int scoringRows(DecoderShape shape) {
        return rows(shape, SCORING_COPIES + joinedCopies(shape));
    }

    /** Tokens whose log-probs and gradient are found at once. */
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
