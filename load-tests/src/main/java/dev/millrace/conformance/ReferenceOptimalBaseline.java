package dev.millrace.conformance;

import dev.millrace.corrections.vcpo.WeightedAverage;
import java.util.Objects;

/**
 * The OPOB baseline as VCPO's code computes it, from linear weights and with 1e-8 added to their sum; for comparison
 * only.
 *
 * <p>An overflowed weight makes the mean NaN here; {@link dev.millrace.corrections.vcpo.OffPolicyOptimalBaseline} has no such case.
 *
 * @param lengthNormalized whether weights are divided by the square of the trained length
 */
record ReferenceOptimalBaseline(WeightedAverage average, boolean lengthNormalized) {
    private static final double EPSILON = 1e-8;

    ReferenceOptimalBaseline {
        Objects.requireNonNull(average, "average");
    }

    /**
     * The baseline of the given sequences.
     *
     * @param returns rewards, or advantages for a baseline over the batch
     * @param gradientNorms of each sequence's log-probability
     * @param importanceWeights linear; all 1 where they are not used
     * @throws IllegalArgumentException if a sequence without trained tokens is to be normalised by its length, where
     *     the reference divides by zero
     */
    double of(double[] returns, double[] gradientNorms, double[] importanceWeights, int[] trainedLengths) {
        double[] weights = new double[returns.length];
        for (int i = 0; i < weights.length; i++) {
            double length = trainedLengths[i];
            if (lengthNormalized && trainedLengths[i] == 0) {
                throw new IllegalArgumentException(
                        "a sequence without trained tokens cannot be normalised by its length: index=" + i);
            }
            double weight = gradientNorms[i] * gradientNorms[i] * (importanceWeights[i] * importanceWeights[i]);
            weights[i] = lengthNormalized ? weight / (length * length) : weight;
        }
        return average.of(returns, weights, EPSILON);
    }
}
