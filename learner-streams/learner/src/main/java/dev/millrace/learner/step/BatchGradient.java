package dev.millrace.learner.step;

import dev.millrace.policy.weights.Gradients;
import java.util.OptionalDouble;

/**
 * A batch's gradient of the loss, and how large each sequence's part of it is.
 *
 * @param sum           over the batch's sequences; belongs to the caller
 * @param sequenceNorms L2 norm of the part of each sequence with a trained token; the parts add up to {@code sum}
 * @param essRatio      effective sample size in force; empty where there was nothing to weigh
 * @param stepScale     factor on the learning rate that the decision asks for
 */
public record BatchGradient(
        Gradients sum, double[] sequenceNorms, long tokensTrained, OptionalDouble essRatio, double stepScale) {
    private static final double LEAST_NORM = 1e-9;
    private static final double LEAST_SHARE = 1e-6;

    /**
     * The variance of {@code sum} as sequences that are drawn independently would have it:
     * {@code (n Σ ‖g_s‖² − ‖Σ g_s‖²) / (n − 1)}, n times the unbiased variance of a part. Siblings of a group share a
     * baseline, which this leaves out. NaN with fewer than two sequences.
     */
    public double noise() {
        int n = sequenceNorms.length;
        if (n < 2) {
            return Double.NaN;
        }
        double squares = 0;
        for (double norm : sequenceNorms) {
            squares += norm * norm;
        }
        double norm = sum.l2Norm();
        return (n * squares - norm * norm) / (n - 1);
    }

    /** What of {@code ‖sum‖²} is not {@link #noise}: an unbiased estimate of the expected gradient's square, so it may be below 0. */
    public double signal() {
        double norm = sum.l2Norm();
        return norm * norm - noise();
    }

    /**
     * Whether there is a gradient to hold others against: some signal, beyond rounding. There is none where the batch is
     * nothing but noise, and none where the policy has become so sure that nothing moves it.
     */
    public boolean isSomething() {
        double norm = sum.l2Norm();
        return norm > LEAST_NORM && signal() > LEAST_SHARE * norm * norm;
    }
}
