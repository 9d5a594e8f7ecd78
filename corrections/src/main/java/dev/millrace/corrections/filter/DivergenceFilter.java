package dev.millrace.corrections.filter;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RejectionAggregation;
import dev.millrace.corrections.rollout.RejectionDivergence;
import dev.millrace.corrections.rollout.RejectionRule;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig.ObjectiveMode;
import dev.millrace.corrections.rollout.Semantics;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * Masks tokens, or truncates their weights, where a divergence between proximal and behavior policy leaves its
 * bounds: {@code lower <= d <= upper}, both inclusive.
 *
 * <p>Who is outside is decided by a {@link RejectionRule} over behavior / proximal, which is AReaL's reading of the signs.
 * Weights are {@code rho} per token; at sequence level under {@link Metric#RATIO} the geometric mean of the
 * sequence. {@link Action#MASK} takes tokens or sequences outside the bounds out of the mask and leaves weights as
 * they are; {@link Action#TRUNCATE} keeps the mask and moves weights into {@code [lower, upper]}, at sequence level
 * only those of sequences outside the bounds. Ratios are compared as logs. Weights are bounded by the largest float.
 *
 * <p>Unit: token or sequence, by {@link RejectionAggregation}. Source: AReaL {@code apply_rejection_sampling} and
 * {@code RejectionSamplingConfig}, commit 4aef98d; {@code TRUNCATE} is its {@code clamp}. It replaces a log ratio
 * that is not finite by 0, so that a corrupt token passes as perfectly on-policy; here it is refused. It ignores the
 * aggregation at token level with a warning; here there is none to give. Log ratios are bounded to
 * {@code [-20, 20]} before they are summed, as in every rejection here.
 *
 * <p>Immutable and thread-safe.
 *
 * @param action what happens outside the bounds
 * @param lower lower bound, if any; positive for {@link Metric#RATIO}
 * @param upper upper bound; above 1 for {@link Metric#RATIO}, positive for k2 and k3
 */
public record DivergenceFilter(
        Metric metric, RejectionAggregation aggregation, Action action, OptionalDouble lower, double upper) {
    private static final double LOG_LARGEST_FLOAT = Math.log(Float.MAX_VALUE);

    /** Metric of a token, from {@code l = log rho = log proximal - log behavior}. */
    public enum Metric {
        /** {@code rho = e^l}; aggregated as log, so that a mean is geometric and does not grow with length. */
        RATIO(RejectionDivergence.K1),
        /** {@code k1 = l}; may be negative. */
        K1(RejectionDivergence.K1),
        /** {@code k2 = l^2 / 2}. */
        K2(RejectionDivergence.K2),
        /** {@code k3 = e^-l - 1 + l}. */
        K3(RejectionDivergence.K3);

        private final RejectionDivergence divergence;

        Metric(RejectionDivergence divergence) {
            this.divergence = divergence;
        }
    }

    /** Action for values outside the bounds. */
    public enum Action {
        /** Taken out of the mask. */
        MASK,
        /** Kept, with a weight moved to the nearest bound; for {@link Metric#RATIO} only. */
        TRUNCATE
    }

    public DivergenceFilter {
        Objects.requireNonNull(metric, "metric");
        Objects.requireNonNull(aggregation, "aggregation");
        Objects.requireNonNull(action, "action");
        if (!Double.isFinite(upper) || lower.isPresent() && !(lower.getAsDouble() <= upper)) {
            throw new IllegalArgumentException(
                    "bounds must be finite with lower <= upper: lower=" + lower + ", upper=" + upper);
        }
        if (metric == Metric.RATIO && !(upper > 1.0)) {
            throw new IllegalArgumentException(
                    "upper must be above 1 for the ratio, or it filters all but identical tokens: upper=" + upper);
        }
        if (metric == Metric.RATIO && lower.isPresent() && !(lower.getAsDouble() > 0.0)) {
            throw new IllegalArgumentException("lower must be positive for the ratio: lower=" + lower.getAsDouble());
        }
        if ((metric == Metric.K2 || metric == Metric.K3) && !(upper > 0.0)) {
            throw new IllegalArgumentException("upper must be positive for " + metric + ": upper=" + upper);
        }
        if (action == Action.TRUNCATE && metric != Metric.RATIO) {
            throw new IllegalArgumentException(
                    "only the ratio is a weight that can be truncated: metric=" + metric + "; mask instead");
        }
    }

    /**
     * Overwrites {@code mask} and {@code weights}, one element per packed token: mask 1 if trained and kept; the
     * weight where the mask is 1, else 0.
     *
     * @param ratio proximal / behavior, {@link LogRatio#anchor}
     * @throws IllegalArgumentException if an array has another length than the batch
     * @throws NonFiniteLogProbException naming sequence and token; the results are then overwritten in part
     */
    public FilterSummary compute(TokenBatch batch, LogRatio ratio, byte[] mask, float[] weights) {
        ratio.requireFits(batch);
        batch.requireLength("mask", mask.length);
        batch.requireLength("weights", weights.length);
        byte[] inside = inside(batch, ratio);
        int changed = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            changed += aggregation == RejectionAggregation.TOKEN
                    ? weighTokens(batch, ratio, s, inside, mask, weights)
                    : weighSequence(batch, ratio, s, inside, mask, weights);
        }
        return new FilterSummary(batch.trainedTokens(), changed);
    }

    /** 1 for a trained token on which, or on whose sequence, no verdict falls. */
    private byte[] inside(TokenBatch batch, LogRatio ratio) {
        if (batch.trainedTokens() == 0) {
            return new byte[batch.tokenCount()];
        }
        double least = metric.divergence == RejectionDivergence.K1 ? Double.NEGATIVE_INFINITY : 0.0;
        RejectionRule rule = new RejectionRule(
                metric.divergence, aggregation, lower.isPresent() ? scaled(lower.getAsDouble()) : least, scaled(upper));
        return new RolloutCorrection(new RolloutCorrectionConfig(
                        Optional.empty(), false, List.of(rule), ObjectiveMode.DECOUPLED, Semantics.MILLRACE))
                .apply(batch, ratio.inverse())
                .mask();
    }

    private double scaled(double bound) {
        return metric == Metric.RATIO ? Math.log(bound) : bound;
    }

    private int weighTokens(
            TokenBatch batch, LogRatio ratio, int sequence, byte[] inside, byte[] mask, float[] weights) {
        int changed = 0;
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            boolean outside = batch.isTrained(t) && inside[t] == 0;
            boolean keep = batch.isTrained(t) && (action == Action.TRUNCATE || !outside);
            changed += outside ? 1 : 0;
            mask[t] = (byte) (keep ? 1 : 0);
            weights[t] = !keep ? 0f : weight(outside ? truncated(ratio.at(t)) : ratio.at(t));
        }
        return changed;
    }

    private int weighSequence(
            TokenBatch batch, LogRatio ratio, int sequence, byte[] inside, byte[] mask, float[] weights) {
        int trained = batch.trainedTokens(sequence);
        boolean outside = false;
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            outside |= batch.isTrained(t) && inside[t] == 0;
        }
        boolean kept = action == Action.TRUNCATE || !outside;
        double mean = trained == 0 ? 0.0 : ratio.sum(batch, sequence) / trained;
        double shared = outside && action == Action.TRUNCATE ? truncated(mean) : mean;
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            boolean keep = kept && batch.isTrained(t);
            mask[t] = (byte) (keep ? 1 : 0);
            weights[t] = !keep ? 0f : weight(metric == Metric.RATIO ? shared : ratio.at(t));
        }
        return outside && (action == Action.MASK || shared != mean) ? trained : 0;
    }

    private double truncated(double logRatio) {
        double atMost = Math.min(logRatio, Math.log(upper));
        return lower.isPresent() ? Math.max(atMost, Math.log(lower.getAsDouble())) : atMost;
    }

    private static float weight(double logRatio) {
        return (float) Math.exp(Math.min(logRatio, LOG_LARGEST_FLOAT));
    }
}
