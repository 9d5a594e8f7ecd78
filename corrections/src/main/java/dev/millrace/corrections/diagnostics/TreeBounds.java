package dev.millrace.corrections.diagnostics;

/**
 * The bounds of the decision tree. Those of the survey ("Off-Policy Drift in LLM RL", Liu 2026) are operational
 * defaults. Where the survey only says "large" or "far", the number is this library's, with its reason.
 *
 * @param course of what changes over the steps
 * @param escalation when the correction in force is not enough
 */
public record TreeBounds(EngineBounds engines, DriftBounds drift, CourseBounds course, EscalationBounds escalation) {
    public static final TreeBounds DEFAULT = new TreeBounds(
            new EngineBounds(0.95, 0.001, Math.exp(0.05), 0.5, 1.0, 0.1, 100),
            new DriftBounds(0.02, 0.05, 2.0, 0.3, 1.0, 10.0, 0.5),
            new CourseBounds(2.0, 0.2, 1.05, 1.2, 100),
            EscalationBounds.DEFAULT);

    /**
     * When two engines disagree about one version.
     *
     * @param brokenCorrelation below it the engines are broken: 0.95; in order they have 0.99
     * @param significantDifference a correlation only counts if probabilities differ by this on average: 0.001. For a
     *     policy that is nearly certain of every token, the correlation only measures rounding
     * @param brokenPerplexity a ratio of the perplexities above it, or below its inverse, is far from 1: e^0.05, which
     *     matches {@code driftingKl}
     * @param probabilitySpike above this largest difference of a token's probabilities, the engines think the opposite: 0.5
     * @param otherTokensKl at one version, a mean gap above one nat means that different tokens were compared: engines in
     *     order are two to three orders of magnitude below, re-tokenised text is at 4 to 7
     * @param weightBias at one version, a mean ratio this far from 1, its expectation, means that the scored distribution
     *     is not the sampled one: 0.1, and five standard errors
     * @param leastTokens with fewer tokens nothing is concluded about the engines: 100, where a correlation of 0.95 has a
     *     standard error of a hundredth
     */
    public record EngineBounds(
            double brokenCorrelation,
            double significantDifference,
            double brokenPerplexity,
            double probabilitySpike,
            double otherTokensKl,
            double weightBias,
            int leastTokens) {}

    /**
     * When policies have drifted apart.
     *
     * @param agreeingKl below this many nats per token there is no drift: 0.02. Growth is counted from here, since below it
     *     a ratio of two gaps would only measure noise
     * @param driftingKl above it there is drift: 0.05
     * @param staleGrowth without old log-probs, how many times the gap of the newest lag the gap of the oldest must be to
     *     blame age: 2
     * @param moderateChiSquare token chi-square of a moderate drift: 0.3
     * @param severeChiSquare of a variance blow-up: 1, twice the variance on-policy
     * @param explodedChiSquare of whole sequences, where sequences are weighed: 10, an effective sample size of a tenth
     * @param lowSampleSize an effective sample size below it is a blow-up: 0.5
     */
    public record DriftBounds(
            double agreeingKl,
            double driftingKl,
            double staleGrowth,
            double moderateChiSquare,
            double severeChiSquare,
            double explodedChiSquare,
            double lowSampleSize) {}

    /**
     * When steps differ from those before.
     *
     * @param noiseGrowth a gradient noise under the weights this many times that without them: 2, as for the chi-square
     * @param clipFraction above it, and rising, the clip is saturated: 0.2
     * @param rising how much a mean must grow from the older half of the window to the newer to count as rising: 5 %
     * @param surge a mean length this many times the earlier one: 1.2
     * @param surgeSteps number of steps between the two mean lengths: 100
     */
    public record CourseBounds(double noiseGrowth, double clipFraction, double rising, double surge, int surgeSteps) {}
}
