package dev.millrace.corrections.vcpo;

/**
 * Effective sample size of importance weights, {@code ESS = (sum w)^2 / sum w^2}, and its ratio to their number.
 *
 * <p>Unit: sequence (one weight per sequence). The ratio is in (0, 1]: 1 when all weights are equal, {@code 1/n} when
 * one of them is everything. Both sums are taken relative to the largest weight, in log space. So neither overflows nor
 * vanishes for sequences of any length, and scaling all weights by a constant changes nothing.
 *
 * <p>VCPO's code differs: it adds 1e-8 to the denominator, which drives the ratio of uniformly small weights to 0. It
 * also counts sequences without a trained token as perfectly on-policy, and yields NaN when a
 * weight overflows.
 *
 * @param ess between 1 and {@code weights}
 * @param ratio {@code ess / weights}, in (0, 1]
 */
public record EffectiveSampleSize(int weights, double ess, double ratio) {

    /**
     * From raw weights.
     *
     * @param logWeights natural logs, see {@link SequenceLogWeights}; negative infinity is the weight 0
     * @throws IllegalArgumentException if there is none, if one is NaN or positive infinity, or if all are the
     *     weight 0: no effective sample size exists then, and a substitute would scale the step by it
     */
    public static EffectiveSampleSize ofRaw(double[] logWeights) {
        return compute(logWeights, Double.POSITIVE_INFINITY);
    }

    /**
     * From truncated weights {@code min(w, cap)}. Truncation hides the outliers the raw number is there to show:
     * report both.
     *
     * @param cap largest weight, positive and finite
     * @throws IllegalArgumentException as {@link #ofRaw}, or if the cap is out of range
     */
    public static EffectiveSampleSize ofTruncated(double[] logWeights, double cap) {
        if (!(cap > 0.0 && cap < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("cap must be positive and finite: cap=" + cap);
        }
        return compute(logWeights, Math.log(cap));
    }

    private static EffectiveSampleSize compute(double[] logWeights, double logCap) {
        double largest = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < logWeights.length; i++) {
            if (!(logWeights[i] < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("a log weight must be finite, or -Infinity for the weight 0: index="
                        + i + ", value=" + logWeights[i]);
            }
            largest = Math.max(largest, Math.min(logWeights[i], logCap));
        }
        if (largest == Double.NEGATIVE_INFINITY) {
            throw new IllegalArgumentException(
                    logWeights.length == 0
                            ? "no weights: the batch has no sequence with a trained token, so there is no effective sample size"
                            : "all " + logWeights.length + " weights are 0, so there is no effective sample size");
        }
        double sum = 0.0;
        double sumOfSquares = 0.0;
        for (double logWeight : logWeights) {
            double relative = Math.exp(Math.min(logWeight, logCap) - largest);
            sum += relative;
            sumOfSquares += relative * relative;
        }
        // rounding may leave the mathematical range [1, n] by the last bit
        double ess = Math.max(1.0, Math.min(logWeights.length, sum * sum / sumOfSquares));
        return new EffectiveSampleSize(logWeights.length, ess, ess / logWeights.length);
    }
}
