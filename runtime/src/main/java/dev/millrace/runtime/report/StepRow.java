package dev.millrace.runtime.report;

import dev.millrace.schemas.TrainingStep;
import java.util.List;
import java.util.Locale;

/** One optimiser step as a person reads it: the line of steps.csv and a point of the picture. */
public record StepRow(
        long step,
        long version,
        double reward,
        double stalenessMean,
        long stalenessMax,
        double essRatio,
        double learningRate,
        double loss,
        double gradientNorm,
        double entropy,
        int rolloutsTrained,
        int rolloutsMasked,
        long tokensTrained,
        long finishedAtMs,
        String weightsSha256) {

    /** The columns of steps.csv. */
    public static final List<String> COLUMNS = List.of(
            "step",
            "version",
            "reward",
            "staleness_mean",
            "staleness_max",
            "ess_ratio",
            "learning_rate",
            "loss",
            "grad_norm",
            "entropy",
            "rollouts_trained",
            "rollouts_masked",
            "tokens_trained",
            "finished_at_ms",
            "weights_sha256");

    /** The row of a record of the training log; a metric that the learner did not report is NaN. */
    public static StepRow of(TrainingStep step) {
        return new StepRow(
                step.getBatchId() + 1,
                step.getVersion(),
                step.getRewardMean(),
                step.getStalenessMean(),
                step.getStalenessMax(),
                step.getEssRatio(),
                step.getLearningRate(),
                metric(step, "loss"),
                metric(step, "grad_norm"),
                metric(step, "entropy"),
                step.getRolloutsTrained(),
                step.getRolloutsMasked(),
                step.getTokensTrained(),
                step.getFinishedAtMs(),
                step.getWeightsSha256());
    }

    private static double metric(TrainingStep step, String name) {
        return step.getMetrics().getOrDefault(name, Double.NaN);
    }

    /** The row as CSV, in the order of {@link #COLUMNS}. */
    public String csv() {
        return String.format(
                Locale.ROOT,
                "%d,%d,%.6f,%.6f,%d,%.6f,%.8f,%.6f,%.6f,%.6f,%d,%d,%d,%d,%s",
                step,
                version,
                reward,
                stalenessMean,
                stalenessMax,
                essRatio,
                learningRate,
                loss,
                gradientNorm,
                entropy,
                rolloutsTrained,
                rolloutsMasked,
                tokensTrained,
                finishedAtMs,
                weightsSha256);
    }
}
