package dev.millrace.runtime.report;

import dev.millrace.report.Column;
import dev.millrace.schemas.TrainingStep;
import java.util.List;

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
    public static final List<Column<StepRow>> COLUMNS = List.of(
            Column.count("step", StepRow::step),
            Column.count("version", StepRow::version),
            Column.number("reward", 6, StepRow::reward),
            Column.number("staleness_mean", 6, StepRow::stalenessMean),
            Column.count("staleness_max", StepRow::stalenessMax),
            Column.number("ess_ratio", 6, StepRow::essRatio),
            Column.number("learning_rate", 8, StepRow::learningRate),
            Column.number("loss", 6, StepRow::loss),
            Column.number("grad_norm", 6, StepRow::gradientNorm),
            Column.number("entropy", 6, StepRow::entropy),
            Column.count("rollouts_trained", StepRow::rolloutsTrained),
            Column.count("rollouts_masked", StepRow::rolloutsMasked),
            Column.count("tokens_trained", StepRow::tokensTrained),
            Column.count("finished_at_ms", StepRow::finishedAtMs),
            Column.text("weights_sha256", StepRow::weightsSha256));

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
}
