package dev.millrace.corrections.filter;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.filter.DivergenceFilter.Action;
import dev.millrace.corrections.filter.DivergenceFilter.Metric;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.rollout.RejectionAggregation;
import dev.millrace.corrections.rollout.ThresholdText;
import dev.millrace.corrections.stage.RatioMask;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;
import java.util.OptionalDouble;

/**
 * AReaL's rejection as a mask: tokens or sequences whose divergence of proximal from behavior leaves its bounds, see
 * {@link DivergenceFilter}.
 *
 * <p>Its k1 is {@code +log rho}; the rejections named after verl take {@code -log rho}. Unit: token or sequence, by the
 * aggregation.
 *
 * @param metric what is measured
 * @param aggregation unit of the decision
 * @param threshold {@code upper}, or {@code lower_upper}
 */
public record DivergenceFilterMask(Metric metric, RejectionAggregation aggregation, String threshold)
        implements RatioMask {
    public DivergenceFilterMask {
        filter(metric, aggregation, threshold);
    }

    /** Tokens whose ratio is above 5. */
    public static DivergenceFilterMask defaults() {
        return new DivergenceFilterMask(Metric.RATIO, RejectionAggregation.TOKEN, "5.0");
    }

    private static DivergenceFilter filter(Metric metric, RejectionAggregation aggregation, String threshold) {
        int bar = threshold.indexOf('_');
        OptionalDouble lower = bar < 0
                ? OptionalDouble.empty()
                : OptionalDouble.of(ThresholdText.number("threshold", threshold.substring(0, bar)));
        double upper = ThresholdText.number("threshold", threshold.substring(bar + 1));
        return new DivergenceFilter(metric, aggregation, Action.MASK, lower, upper);
    }

    @Override
    public String name() {
        return "divergence_filter";
    }

    @Override
    public CorrectionUnit unit() {
        return aggregation == RejectionAggregation.TOKEN ? CorrectionUnit.TOKEN : CorrectionUnit.SEQUENCE;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch left = batch.left();
        LogRatio ratio = batch.facts().ratio(RatioKind.ANCHOR);
        ratio.requireFinite(left);
        byte[] keep = new byte[left.tokenCount()];
        FilterSummary summary =
                filter(metric, aggregation, threshold).compute(left, ratio, keep, new float[left.tokenCount()]);
        Map<String, Double> values = StageSettings.of(this);
        if (summary.trainedTokens() > 0) {
            values.put("filtered_fraction", summary.changedFraction());
        }
        return batch.mask(this, keep, values);
    }
}
