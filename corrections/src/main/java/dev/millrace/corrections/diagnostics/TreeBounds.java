package dev.millrace.corrections.diagnostics;

/**
 * The bounds of the decision tree. Defaults: {@link #DEFAULT}, with where each comes from.
 *
 * @param misalignedKl a mean gap above it (nats per token, either sign) means other tokens: two engines on one
 *     version are two to three orders of magnitude below, re-tokenised text is at 4 to 7
 * @param misalignedCorrelation a correlation of the probabilities below it means other tokens; engines in working order
 *     have 0.99, a bad one 0.9
 * @param weightBias how far the mean ratio may be from 1, which is its expectation whatever the policies, as long as
 *     the sampler's log-probs are those of what was sampled
 * @param notableK3 a mean k3 (nats per token) above it is worth a correction
 * @param severeKl verl's guide calls a mean KL above it a significant gap
 * @param severeChiSquare and a token chi-square above it a severe shift
 * @param lowSampleSize and an effective sample size below it a concentration of weight
 * @param staleGrowth how many times larger the k3 of the oldest lag must be than that of the newest to blame age
 * @param feedbackGrowth how many times larger the k3 of the second half of a window must be than that of the first
 */
public record TreeBounds(
        double misalignedKl,
        double misalignedCorrelation,
        double weightBias,
        double notableK3,
        double severeKl,
        double severeChiSquare,
        double lowSampleSize,
        double staleGrowth,
        double feedbackGrowth) {
    /** One nat, 0.5, 0.1, 0.001 nats, 0.1 nats, 1, 0.3, fourfold, twofold. */
    public static final TreeBounds DEFAULT = new TreeBounds(1.0, 0.5, 0.1, 1e-3, 0.1, 1.0, 0.3, 4.0, 2.0);

    public TreeBounds {
        requirePositive("misalignedKl", misalignedKl);
        requirePositive("misalignedCorrelation", misalignedCorrelation);
        requirePositive("weightBias", weightBias);
        requirePositive("notableK3", notableK3);
        requirePositive("severeKl", severeKl);
        requirePositive("severeChiSquare", severeChiSquare);
        requirePositive("lowSampleSize", lowSampleSize);
        requirePositive("staleGrowth", staleGrowth);
        requirePositive("feedbackGrowth", feedbackGrowth);
    }

    private static void requirePositive(String name, double bound) {
        if (!(bound > 0 && bound < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(name + " must be positive and finite: " + bound);
        }
    }
}
