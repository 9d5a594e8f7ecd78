package dev.millrace.corrections.trm;

/**
 * Whole distributions of both policies, {@code [tokens][vocabulary]}: divergences are exact.
 *
 * <p>A vocabulary of 65536 at 2048 tokens takes 0.5 GB per policy and sequence as floats; {@link TopKDistributions}
 * is what one can afford to keep.
 */
public final class FullDistributions implements StoredDistributions {
    /** How far the probabilities of one token may sum from 1: what rounding to half precision leaves. */
    static final double SUM_TOLERANCE = 1e-2;

    /** How far rounding may lift the log of a certain token's probability above 0. */
    private static final float ROUNDING = 1e-3f;

    private final int vocabulary;
    private final float[] behavior;
    private final float[] current;

    /**
     * @param behavior log-probs, {@code [tokens][vocabulary]}
     * @param current log-probs, {@code [tokens][vocabulary]}
     */
    public FullDistributions(int vocabulary, float[] behavior, float[] current) {
        if (vocabulary < 1 || behavior.length != current.length || behavior.length % vocabulary != 0) {
            throw new IllegalArgumentException("distributions need [tokens][vocabulary] log-probs of both policies:"
                    + " vocabulary=" + vocabulary + ", behavior=" + behavior.length + ", current=" + current.length);
        }
        this.vocabulary = vocabulary;
        this.behavior = behavior;
        this.current = current;
    }

    @Override
    public int tokens() {
        return behavior.length / vocabulary;
    }

    @Override
    public boolean isWhole(int token) {
        return true;
    }

    @Override
    public double klAt(int token) {
        double kl = 0.0;
        double behaviorSum = 0.0;
        double currentSum = 0.0;
        for (int i = token * vocabulary; i < (token + 1) * vocabulary; i++) {
            double p = probability(behavior[i]);
            behaviorSum += p;
            currentSum += probability(current[i]);
            if (p > 0.0) {
                kl += p * ((double) behavior[i] - current[i]);
            }
        }
        requireSum("behavior", behaviorSum);
        requireSum("current", currentSum);
        return Math.max(0.0, kl); // rounding of near-equal distributions may fall below the smallest possible KL
    }

    @Override
    public double totalVariationAt(int token) {
        double sum = 0.0;
        for (int i = token * vocabulary; i < (token + 1) * vocabulary; i++) {
            sum += Math.abs(probability(behavior[i]) - probability(current[i]));
        }
        return Math.min(1.0, 0.5 * sum);
    }

    static double probability(float logProb) {
        if (!(logProb <= ROUNDING)) { // NaN too
            throw new IllegalArgumentException("a stored log-prob must not be positive or NaN: " + logProb);
        }
        return Math.exp(logProb);
    }

    private static void requireSum(String policy, double sum) {
        if (Math.abs(sum - 1.0) > SUM_TOLERANCE) {
            throw new IllegalArgumentException(
                    "the stored probabilities of the " + policy + " policy must sum to 1: sum=" + sum);
        }
    }
}
