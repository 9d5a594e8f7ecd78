package dev.millrace.corrections.diagnostics;

import java.util.OptionalDouble;

/**
 * How far a target policy is from the sampler, on one set of tokens.
 *
 * <p>With {@code l} the log ratio of a token, {@code rho = e^l} bounded to {@code e^-20 .. e^20}, p and q the
 * target's and the sampler's probability of the sampled token; means over tokens unless "sequence" is said. A
 * sequence counts with those of its tokens that are in the set.
 *
 * @param tokens trained tokens in the set; every number below is 0 or empty if there are none
 * @param sequences sequences with at least one of them
 * @param divergence of the target from the sampler
 * @param perplexityRatio mean over sequences of exp(mean log q - mean log p)
 * @param weights moments of the raw weights rho
 */
public record PolicyGap(
        int tokens,
        int sequences,
        Divergence divergence,
        double perplexityRatio,
        WeightMoments weights,
        ProbabilityAgreement probabilities) {

    static final PolicyGap NONE = new PolicyGap(
            0,
            0,
            new Divergence(0, 0, 0, 0),
            0,
            new WeightMoments(0, 0, 0, 0),
            new ProbabilityAgreement(0, 0, 0, OptionalDouble.empty()));

    /**
     * Estimates of divergences.
     *
     * @param kl mean of -l, the k1 estimate of {@code KL(sampler || target)}; may be negative
     * @param k3 mean of {@code rho - 1 - l}, which is never negative
     * @param chiSquareToken mean of rho^2, minus 1
     * @param chiSquareSequence mean over sequences of {@code (prod rho)^2}, minus 1; the log of the product bounded to 20
     */
    public record Divergence(double kl, double k3, double chiSquareToken, double chiSquareSequence) {}

    /**
     * Raw weights of tokens.
     *
     * @param mean mean; 1 in expectation for any two policies
     * @param standardDeviation square root of mean square minus squared mean
     * @param effectiveSampleSize {@code mean^2 / mean square}, in (0, 1]
     * @param sequenceEffectiveSampleSize {@code (sum w)^2 / (n sum w^2)} of the raw sequence weights, in (0, 1]
     */
    public record WeightMoments(
            double mean, double standardDeviation, double effectiveSampleSize, double sequenceEffectiveSampleSize) {}

    /**
     * Agreement of the two probabilities of the sampled tokens.
     *
     * @param meanDifference mean of |p - q|
     * @param maxDifference largest |p - q|, a lower bound on the largest total variation of any token
     * @param differenceDeviation standard deviation of |p - q| (n - 1); 0 of a single token
     * @param pearson correlation of p and q; empty of fewer than two tokens, or if one of the two does not vary
     */
    public record ProbabilityAgreement(
            double meanDifference, double maxDifference, double differenceDeviation, OptionalDouble pearson) {}
}
