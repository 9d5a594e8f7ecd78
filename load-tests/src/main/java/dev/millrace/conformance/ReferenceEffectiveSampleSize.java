package dev.millrace.conformance;

import dev.millrace.corrections.vcpo.Ess;

/**
 * The effective sample size as VCPO's code computes it, {@code (sum w)^2 / (sum w^2 + 1e-8)}; for comparison only.
 *
 * <p>Weights are linear, so one that overflowed makes the result NaN; the 1e-8 drives the ratio of small weights to
 * 0. {@link dev.millrace.corrections.vcpo.EffectiveSampleSize} has neither property.
 *
 * @param ess 0 without weights
 * @param ratio {@code ess / number of weights}; 0 without weights
 */
record ReferenceEffectiveSampleSize(double ess, double ratio) {
    private static final double EPSILON = 1e-8;
    private static final double SMALLEST_BASE = 1e-8;

    /** @param weights one per sequence, linear, those of sequences without a trained token included as 1 */
    static ReferenceEffectiveSampleSize of(double[] weights) {
        if (weights.length == 0) {
            return new ReferenceEffectiveSampleSize(0.0, 0.0);
        }
        double sum = 0.0;
        double sumOfSquares = 0.0;
        for (double weight : weights) {
            sum += weight;
            sumOfSquares += weight * weight;
        }
        double ess = sum * sum / (sumOfSquares + EPSILON);
        return new ReferenceEffectiveSampleSize(ess, ess / weights.length);
    }

    /** Its factor on the learning rate: any ratio and any base are taken, a base below 1e-8 counts as 1e-8, and a NaN ratio gives 1. */
    static double stepScale(Ess.Rule rule, double baseRatio, double essRatio) {
        double relative = essRatio / Math.max(baseRatio, SMALLEST_BASE);
        return rule.follow(relative < 1.0 ? relative : 1.0);
    }
}
