package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;

/** Reference implementation: applies one rule literally, token by token. */
public final class NaiveRejection {
    private NaiveRejection() {}

    /** The mask without what the rule rejects. */
    public static byte[] mask(TokenBatch batch, LogRatio ratio, RejectionRule rule) {
        byte[] mask = batch.mask();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double sum = 0;
            double max = Double.NEGATIVE_INFINITY;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double value = rule.divergence().of(ratio.boundedAt(t));
                    sum += value;
                    max = Math.max(max, value);
                    if (rule.aggregation() == RejectionAggregation.TOKEN && !rule.keeps(value)) {
                        mask[t] = 0;
                    }
                }
            }
            double statistic = switch (rule.aggregation()) {
                case TOKEN -> Double.NaN;
                case SUM -> sum;
                case MEAN -> sum / batch.trainedTokens(s);
                case MAX -> max;
            };
            if (rule.aggregation() != RejectionAggregation.TOKEN
                    && batch.trainedTokens(s) > 0
                    && !rule.keeps(statistic)) {
                Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
            }
        }
        return mask;
    }
}
