package dev.millrace.corrections.rollout;

/**
 * Whose reading of the metrics and thresholds applies where verl's is a known defect.
 *
 * <p>What differs is listed at the constants. For a valid configuration and weights that are not all next to 0, weights
 * and masks are the same but for the 1e-8.
 */
public enum Semantics {
    /**
     * Means divide by the count. Statistics over sequences run over the sequences that have a trained token. The
     * effective sample size of weights that are all 0 is 0. A configuration that could never act, or would reject
     * every on-policy token, is refused.
     */
    MILLRACE,
    /**
     * The reference's numbers: means divide by count + 1e-8; perplexities, sequence weights and sequence chi-square
     * count a sequence without trained tokens as perplexity 1, weight 0 and ratio 1; weights that are all 0 are
     * refused, since the reference divides by zero there; weights whose mean is at most 1e-8 are not normalised; empty
     * threshold intervals reject everything; thresholds without their option are ignored. For comparison with verl,
     * not for training.
     */
    VERL_REFERENCE;

    /** What the reference adds to every count it divides by. */
    double countEpsilon() {
        return this == VERL_REFERENCE ? 1e-8 : 0.0;
    }

    /** Weights are normalised only by a mean above this. */
    double leastNormalizingMean() {
        return this == VERL_REFERENCE ? 1e-8 : 0.0;
    }

    /** Returns whether statistics over sequences include a sequence with {@code trainedTokens}. */
    boolean countsSequence(int trainedTokens) {
        return this == VERL_REFERENCE || trainedTokens > 0;
    }
}
