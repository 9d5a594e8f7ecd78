package dev.millrace.corrections.vcpo;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;
import java.util.Objects;

/**
 * OPOB, the baseline of least variance for off-policy policy gradients:
 * {@code b = sum W_i R_i / sum W_i} with {@code W_i = |g_i|^2 w_i^2}, and advantages {@code R_i - b}.
 *
 * <p>{@code g_i} is the gradient of sequence i's log-probability, {@code w_i} its importance weight. Answers that
 * move the weights a lot, and answers that are counted many times over, pull the baseline towards themselves. The
 * plain group mean is the special case of equal norms and weights. Computed relative to the largest weight, in log
 * space: scaling all norms or all weights by a constant changes nothing, nothing overflows.
 *
 * <p>Use raw importance weights here (the baseline's optimality is about them), truncated ones in the update; VCPO's
 * code allows both. A sequence without a trained token has no gradient: it weighs nothing and its advantage is 0.
 *
 * <p>Unit: group, or batch. Source: arXiv 2602.17616 and its code. The code adds 1e-8 to the sum of weights, which
 * pulls the baseline of small gradients towards 0; here nothing is added.
 *
 * <p>Immutable and thread-safe.
 */
public final class OffPolicyOptimalBaseline {
    /** Over which sequences one baseline is taken. */
    public enum Scope {
        /** The sequences of one prompt. */
        GROUP,
        /** All sequences of the batch; returns are then usually advantages that already are relative to their group. */
        BATCH
    }

    private final Scope scope;
    private final WeightedAverage average;
    private final boolean lengthNormalized;
    private final boolean dividedByDeviation;

    /**
     * @param scope over which sequences one baseline is taken
     * @param lengthNormalized whether {@code W_i} is divided by the square of the trained length: for losses that
     *     average over the tokens of a sequence, where {@code g_i} is given for their sum
     * @param dividedByDeviation whether advantages are divided by the population standard deviation of the returns in
     *     scope; where that is 0 all returns are equal, and all advantages 0 anyway
     */
    public OffPolicyOptimalBaseline(
            Scope scope, WeightedAverage average, boolean lengthNormalized, boolean dividedByDeviation) {
        this.scope = Objects.requireNonNull(scope, "scope");
        this.average = Objects.requireNonNull(average, "average");
        this.lengthNormalized = lengthNormalized;
        this.dividedByDeviation = dividedByDeviation;
    }

    /**
     * Overwrites {@code advantages}, one per sequence.
     *
     * @param returns one per sequence: rewards, or any scalar to be baselined
     * @param gradientNorms one per sequence, not negative: norm of the gradient of the sequence's log-probability
     * @param logWeights one per sequence: log importance weights; all 0 for the on-policy baseline
     * @return the baselines, one per group index of the batch, or a single one under {@link Scope#BATCH}; 0 where
     *     nothing has a gradient, since any baseline is right there
     * @throws IllegalArgumentException if an array has not one element per sequence, or a value of a sequence with a
     *     trained token is not finite, or a norm is negative
     */
    public double[] compute(
            TokenBatch batch, double[] returns, double[] gradientNorms, double[] logWeights, double[] advantages) {
        requireLength(batch, "advantages", advantages);
        requireFinite(batch, "returns", returns);
        requireFinite(batch, "gradient norms", gradientNorms);
        requireFinite(batch, "log weights", logWeights);
        Arrays.fill(advantages, 0.0);
        double[] baselines = new double[scope == Scope.BATCH ? 1 : batch.groupCount()];
        int[][] members = members(batch, baselines.length);
        for (int scoped = 0; scoped < baselines.length; scoped++) {
            int[] sequences = members[scoped];
            double[] values =
                    Arrays.stream(sequences).mapToDouble(s -> returns[s]).toArray();
            double[] weights = weights(batch, sequences, gradientNorms, logWeights);
            baselines[scoped] = average.of(values, weights, 0.0);
            double scale = dividedByDeviation ? deviation(values) : 1.0;
            for (int s : sequences) {
                advantages[s] = scale == 0.0 ? 0.0 : (returns[s] - baselines[scoped]) / scale;
            }
        }
        return baselines;
    }

    private int[][] members(TokenBatch batch, int scopes) {
        int[] sizes = new int[scopes];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            sizes[scopeOf(batch, s)] += batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        int[][] members = new int[scopes][];
        Arrays.setAll(members, i -> new int[sizes[i]]);
        for (int s = batch.sequenceCount() - 1; s >= 0; s--) {
            if (batch.trainedTokens(s) > 0) {
                int scoped = scopeOf(batch, s);
                members[scoped][--sizes[scoped]] = s;
            }
        }
        return members;
    }

    private int scopeOf(TokenBatch batch, int sequence) {
        return scope == Scope.BATCH ? 0 : batch.group(sequence);
    }

    /** {@code W_i} relative to the largest one. */
    private double[] weights(TokenBatch batch, int[] sequences, double[] gradientNorms, double[] logWeights) {
        double[] weights = new double[sequences.length];
        double largest = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < weights.length; i++) {
            int s = sequences[i];
            if (gradientNorms[s] < 0.0) {
                throw new IllegalArgumentException(
                        "a gradient norm must not be negative: sequence=" + s + ", value=" + gradientNorms[s]);
            }
            double perToken = lengthNormalized ? Math.log(batch.trainedTokens(s)) : 0.0;
            weights[i] = 2.0 * (Math.log(gradientNorms[s]) + logWeights[s] - perToken);
            largest = Math.max(largest, weights[i]);
        }
        for (int i = 0; i < weights.length; i++) {
            weights[i] = largest == Double.NEGATIVE_INFINITY ? 0.0 : Math.exp(weights[i] - largest);
        }
        return weights;
    }

    private static double deviation(double[] values) {
        double mean = Arrays.stream(values).average().orElse(0.0);
        return Math.sqrt(Arrays.stream(values)
                .map(v -> (v - mean) * (v - mean))
                .average()
                .orElse(0.0));
    }

    private static void requireFinite(TokenBatch batch, String name, double[] values) {
        requireLength(batch, name, values);
        for (int s = 0; s < values.length; s++) {
            if (batch.trainedTokens(s) > 0 && !Double.isFinite(values[s])) {
                throw new IllegalArgumentException(name + " must be finite: sequence=" + s + ", value=" + values[s]);
            }
        }
    }

    private static void requireLength(TokenBatch batch, String name, double[] values) {
        if (values.length != batch.sequenceCount()) {
            throw new IllegalArgumentException(name + " need one element per sequence: length=" + values.length
                    + ", sequences=" + batch.sequenceCount());
        }
    }
}
