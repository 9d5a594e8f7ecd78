package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.filter.DivergenceFilter;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RejectionAggregation;
import java.util.Objects;
import java.util.OptionalDouble;

/**
 * Importance weights moved into bounds from both sides, {@code w = min(max(rho, lower), upper)}: AReaL's {@code clamp}.
 *
 * <p>Per token it is the token's ratio; over sequences the geometric mean of the ratios, and what is moved is the mean of a
 * sequence whose sum, mean or largest ratio lies outside. Unit: token or sequence, by the aggregation. Source: AReaL
 * {@code apply_rejection_sampling}, commit 4aef98d; see {@link DivergenceFilter}.
 *
 * @param aggregation unit that the bounds apply to
 * @param lower smallest weight, in (0, 1]
 * @param upper largest weight, above 1 and finite
 * @param batchNormalize divide weights by their batch mean
 */
public record ClampedWeights(RejectionAggregation aggregation, double lower, double upper, boolean batchNormalize)
        implements CappedWeights {
    public ClampedWeights {
        Objects.requireNonNull(aggregation, "aggregation");
        if (!(lower > 0 && lower <= 1 && upper > 1 && upper < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "lower and upper must satisfy 0 < lower <= 1 < upper < infinity: " + lower + " and " + upper);
        }
    }

    /** Tokens, from a half to 2. */
    public static ClampedWeights defaults() {
        return new ClampedWeights(RejectionAggregation.TOKEN, 0.5, 2, false);
    }

    private static DivergenceFilter filter(RejectionAggregation aggregation, double lower, double upper) {
        return new DivergenceFilter(
                DivergenceFilter.Metric.RATIO,
                aggregation,
                DivergenceFilter.Action.TRUNCATE,
                OptionalDouble.of(lower),
                upper);
    }

    @Override
    public String name() {
        return "clamp";
    }

    @Override
    public CorrectionUnit unit() {
        return aggregation == RejectionAggregation.TOKEN ? CorrectionUnit.TOKEN : CorrectionUnit.SEQUENCE;
    }

    @Override
    public OptionalDouble cap() {
        return OptionalDouble.of(upper);
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        ratio.requireFinite(batch);
        filter(aggregation, lower, upper).compute(batch, ratio, new byte[batch.tokenCount()], weights);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            int trained = batch.trainedTokens(s);
            double mean = trained == 0 ? 0 : ratio.sum(batch, s) / trained;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double raw = aggregation == RejectionAggregation.TOKEN ? ratio.at(t) : mean;
                    if (weights[t] == (float) Math.exp(LogRatio.bounded(raw))) {
                        tally.kept(weights[t], 1);
                    } else {
                        tally.truncated(weights[t], 1);
                    }
                }
            }
        }
        return tally.summary();
    }
}
