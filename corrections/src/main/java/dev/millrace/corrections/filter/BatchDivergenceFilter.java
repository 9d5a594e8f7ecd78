package dev.millrace.corrections.filter;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.RatioMask;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;

/**
 * Drops a whole batch that is too far from the current policy: its mean k3 of proximal against behavior over
 * the remaining tokens is too large, {@code mean_t (rho_t - 1 - log rho_t) > maxMeanK3}.
 *
 * <p>The last line of defence: the step is starved, which is counted, and training continues with the next batch. Place
 * masks that drop less before it in the list.
 *
 * <p>Unit: batch. Source: our own.
 *
 * @param maxMeanK3 largest mean in nats, positive, finite
 */
public record BatchDivergenceFilter(double maxMeanK3) implements RatioMask {
    public BatchDivergenceFilter {
        if (!(maxMeanK3 > 0 && maxMeanK3 < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("max_mean_k3 must be positive and finite: " + maxMeanK3);
        }
    }

    /** A mean of 0.5 nats. */
    public static BatchDivergenceFilter defaults() {
        return new BatchDivergenceFilter(0.5);
    }

    @Override
    public String name() {
        return "batch_divergence";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.BATCH;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch left = batch.left();
        LogRatio ratio = batch.facts().ratio(RatioKind.ANCHOR);
        ratio.requireFinite(left);
        double sum = 0;
        for (int t = 0; t < left.tokenCount(); t++) {
            if (left.isTrained(t)) {
                double bounded = ratio.boundedAt(t);
                sum += Math.expm1(bounded) - bounded;
            }
        }
        Map<String, Double> values = StageSettings.of(this);
        if (left.trainedTokens() == 0) {
            return batch.mask(this, left.mask(), values);
        }
        double mean = sum / left.trainedTokens();
        values.put("mean_k3", mean);
        return batch.mask(this, mean > maxMeanK3 ? new byte[left.tokenCount()] : left.mask(), values);
    }
}
