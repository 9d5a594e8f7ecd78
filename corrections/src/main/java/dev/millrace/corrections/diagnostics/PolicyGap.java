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
 * @param perplexity of the two
 * @param weights moments of the raw weights rho
 * @param shares of the tokens that a bound or a rejection acts on
 * @param probabilities agreement of p and q
 */
public record PolicyGap(
        int tokens,
        int sequences,
        Divergence divergence,
        Perplexity perplexity,
        WeightMoments weights,
        TokenShares shares,
        ProbabilityAgreement probabilities) {

    /** Of no tokens. */
    static final PolicyGap NONE = new PolicyGap(
            0,
            0,
            new Divergence(0, 0, 0, 0),
            new Perplexity(0, 0, 0),
            new WeightMoments(0, 0, 0, 0, 0, 0),
            new TokenShares(0, 0, 0, 0),
            new ProbabilityAgreement(0, 0, 0, 0, OptionalDouble.empty()));

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
     * Means over sequences.
     *
     * @param target of exp(-mean log p)
     * @param sampler of exp(-mean log q)
     * @param ratio of exp(mean log q - mean log p)
     */
    public record Perplexity(double target, double sampler, double ratio) {}

    /**
     * Raw weights of tokens.
     *
     * @param mean mean; 1 in expectation for any two policies
     * @param standardDeviation square root of mean square minus squared mean
     * @param min smallest
     * @param max largest
     * @param effectiveSampleSize {@code mean^2 / mean square}, in (0, 1]
     * @param sequenceEffectiveSampleSize {@code (sum w)^2 / (n sum w^2)} of the raw sequence weights, in (0, 1]
     */
    public record WeightMoments(
            double mean,
            double standardDeviation,
            double min,
            double max,
            double effectiveSampleSize,
            double sequenceEffectiveSampleSize) {}

    /**
     * Shares of the tokens.
     *
     * @param aboveCap whose rho is above the cap, and so would be truncated
     * @param clippedHigh whose rho is above 1 + the upper clip bound
     * @param clippedLow whose rho is below 1 - the lower clip bound
     * @param rejected that a rejection took out of the set; 0 if none was given
     */
    public record TokenShares(double aboveCap, double clippedHigh, double clippedLow, double rejected) {}

    /**
     * Agreement of the two probabilities of the sampled tokens.
     *
     * @param meanDifference mean of |p - q|
     * @param maxDifference largest |p - q|, a lower bound on the largest total variation of any token
     * @param differenceDeviation standard deviation of |p - q| (n - 1); 0 of a single token
     * @param totalVariation mean of {@code |rho - 1| / 2}, an unbiased estimate of the mean total variation
     * @param pearson correlation of p and q; empty of fewer than two tokens, or if one of the two does not vary
     */
    public record ProbabilityAgreement(
            double meanDifference,
            double maxDifference,
            double differenceDeviation,
            double totalVariation,
            OptionalDouble pearson) {}
}
