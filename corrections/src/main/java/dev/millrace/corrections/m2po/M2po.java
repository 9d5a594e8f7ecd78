package dev.millrace.corrections.m2po;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.RatioMask;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;

/**
 * Applies {@link SecondMomentMask} to the remaining tokens of a batch, proximal against behavior.
 *
 * <p>Unit: token, decided over the whole batch.
 *
 * @param threshold largest mean squared log ratio; finite, at least 0
 * @param harmfulOnly count and mask only tokens that move the policy further away
 */
public record M2po(double threshold, boolean harmfulOnly) implements RatioMask {
    public M2po {
        if (!(threshold >= 0.0 && threshold < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("threshold must be finite and at least 0: " + threshold);
        }
    }

    /** At the authors' 0.04, harmful tokens only. */
    public static M2po defaults() {
        return new M2po(0.04, true);
    }

    /** The second moments before and after are over the candidates, and absent where there is none. */
    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch left = batch.left();
        LogRatio ratio = batch.facts().ratio(RatioKind.ANCHOR);
        SecondMomentMask mask = new SecondMomentMask(threshold);
        byte[] keep = new byte[left.tokenCount()];
        SecondMoment moment = harmfulOnly
                ? mask.computeHarmful(left, ratio, batch.advantages(), keep)
                : mask.compute(left, ratio, keep);
        Map<String, Double> values = StageSettings.of(this);
        values.put("candidates", (double) moment.candidates());
        if (moment.candidates() > 0) {
            values.put("second_moment_before", moment.before());
            values.put("second_moment_after", moment.after());
        }
        values.put("within_threshold", moment.withinThreshold() ? 1.0 : 0.0);
        return batch.mask(this, keep, values);
    }
}
