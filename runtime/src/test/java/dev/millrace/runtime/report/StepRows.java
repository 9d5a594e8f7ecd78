package dev.millrace.runtime.report;

import dev.millrace.schemas.TrainingStep;
import java.util.Map;

/** Steps for tests. */
public final class StepRows {
    private StepRows() {}

    /** A step on which 100 tokens were trained in 1.5 s, with these metrics. */
    public static StepRow of(int step, Map<String, Double> metrics) {
        return new StepRow(record(step).setMetrics(metrics).build());
    }

    /** The same without a token left. */
    public static StepRow starved(int step) {
        return new StepRow(record(step)
                .setStarved(true)
                .setTokensTrained(0)
                .setStalenessMean(null)
                .setEssRatio(null)
                .build());
    }

    private static TrainingStep.Builder record(int step) {
        return TrainingStep.newBuilder()
                .setRunId("r")
                .setEpoch(0)
                .setPolicyId("policy")
                .setBatchId(step - 1)
                .setVersion(step)
                .setWeightsSha256("ab")
                .setRolloutsTrained(6)
                .setRolloutsMasked(2)
                .setTokensTrainable(400)
                .setTokensTrained(100)
                .setRewardMean(0.25)
                .setStalenessMean(1.5)
                .setEssRatio(0.5)
                .setLearningRate(1e-3)
                .setMetrics(Map.of())
                .setStartedAtMs(1_000L * step)
                .setFinishedAtMs(1_000L * step + 1_500);
    }
}
