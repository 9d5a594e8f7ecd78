package org.example.lab;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.IntStream;

/** The reward less the median of its group, which one outlier does not move. */
public record MedianBaseline() implements AdvantageEstimator {

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch layout = batch.facts().tokens();
        double[] rewards = batch.rewards();
        double[] advantages = new double[rewards.length];
        for (int group = 0; group < layout.groupCount(); group++) {
            int of = group;
            int[] members = IntStream.range(0, rewards.length)
                    .filter(s -> layout.group(s) == of)
                    .toArray();
            double median = median(Arrays.stream(members).mapToDouble(s -> rewards[s]).toArray());
            for (int s : members) {
                advantages[s] = rewards[s] - median;
            }
        }
        return batch.advantage(this, advantages, Map.of("groups", (double) layout.groupCount()));
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        int middle = values.length / 2;
        return values.length % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    }
}
