package dev.millrace.conformance;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;

/**
 * Per-sequence statistics of VCPO's {@code compute_is_info}, as it yields them in float32: what exceeds the largest float
 * is infinite, and a sequence without trained tokens has weight 1.
 *
 * @param k3 mean k3 of rollout against old
 * @param geometricMean {@code exp(mean log ratio)}
 * @param raw {@code exp(sum log ratio)}
 * @param clipped {@code min(raw, threshold)}; empty without a positive threshold
 */
record VcpoSequenceWeights(double[] k3, double[] geometricMean, double[] raw, double[] clipped) {
    private static final double EPSILON = 1e-8;

    static VcpoSequenceWeights of(TokenBatch batch, double[] rollout, double[] old, double threshold) {
        int sequences = batch.sequenceCount();
        double[] k3 = new double[sequences];
        double[] geometricMean = new double[sequences];
        double[] raw = new double[sequences];
        for (int s = 0; s < sequences; s++) {
            double sum = 0.0;
            double sumOfK3 = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double logRatio = old[t] - rollout[t];
                    sum += logRatio;
                    sumOfK3 += Math.exp(logRatio) - logRatio - 1.0;
                }
            }
            double count = batch.trainedTokens(s) + EPSILON;
            k3[s] = asFloat(sumOfK3 / count);
            geometricMean[s] = asFloat(Math.exp(sum / count));
            raw[s] = asFloat(Math.exp(sum));
        }
        double[] clipped = threshold > 0.0
                ? Arrays.stream(raw).map(weight -> Math.min(weight, threshold)).toArray()
                : new double[0];
        return new VcpoSequenceWeights(k3, geometricMean, raw, clipped);
    }

    boolean hasClipped() {
        return clipped.length > 0;
    }

    double[] clippedOrRaw() {
        return hasClipped() ? clipped : raw;
    }

    /** Keeps the precision of double within the range of float. */
    private static double asFloat(double value) {
        return Float.isInfinite((float) value) ? value * Double.POSITIVE_INFINITY : value;
    }
}
