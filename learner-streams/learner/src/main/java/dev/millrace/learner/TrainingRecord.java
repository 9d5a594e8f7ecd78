package dev.millrace.learner;

import dev.millrace.corrections.staleness.StepStaleness;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.StepFigures;
import dev.millrace.learner.step.StepMetric;
import dev.millrace.learner.step.StepReport;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Makes the training-log record of a step: what the batch was, what it did, and how long each phase took. */
final class TrainingRecord {
    private final TrainingBatch training;
    private final StepReport report;
    private final Map<String, Double> seconds;
    private final long startVersion;
    private final long rolloutsConsumed;

    /**
     * @param seconds by metric name, each beginning with {@code seconds_}
     * @param startVersion from which the step started
     * @param rolloutsConsumed in all batches up to this one
     */
    TrainingRecord(
            TrainingBatch training,
            StepReport report,
            Map<String, Double> seconds,
            long startVersion,
            long rolloutsConsumed) {
        this.startVersion = startVersion;
        this.rolloutsConsumed = rolloutsConsumed;
        this.training = training;
        this.report = report;
        this.seconds = seconds;
    }

    /** @param manifest of the version that the step made; if it was starved, of the one that stays */
    TrainingStep of(PolicyVersion manifest, long startedAtMs, long finishedAtMs) {
        LearnerBatch batch = training.batch();
        StepFigures figures = report.figures();
        Optional<StepStaleness> staleness = figures.staleness();
        return TrainingStep.newBuilder()
                .setRunId(manifest.getRunId())
                .setEpoch(manifest.getEpoch())
                .setPolicyId(manifest.getPolicyId())
                .setBatchId(batch.getBatchId())
                .setVersion(manifest.getVersion())
                .setWeightsSha256(manifest.getWeights().getSha256())
                .setRolloutsTrained(report.rolloutsTrained())
                .setRolloutsMasked(training.members().size() - report.rolloutsTrained())
                .setTokensTrained(report.tokensTrained())
                .setRewardMean(training.meanReward())
                .setStalenessMean(staleness.map(StepStaleness::mean).orElse(null))
                .setStalenessMax(staleness.map(StepStaleness::max).orElse(null))
                .setStalenessInFlightMean(
                        staleness.map(StepStaleness::inFlightMean).orElse(null))
                .setStalenessInQueueMean(
                        staleness.map(StepStaleness::inQueueMean).orElse(null))
                .setEssRatio(orAbsent(figures.essRatio()))
                .setEssRatioTruncated(orAbsent(figures.essRatioTruncated()))
                .setSecondMoment(orAbsent(figures.secondMoment()))
                .setSecondMomentTrained(orAbsent(figures.secondMomentTrained()))
                .setTokensTrainable(figures.tokensTrainable())
                .setStarved(report.isStarved())
                .setRolloutsConsumed(rolloutsConsumed)
                .setLearningRate(report.learningRate())
                .setMetrics(metrics(manifest, startedAtMs))
                .setStartedAtMs(startedAtMs)
                .setFinishedAtMs(finishedAtMs)
                .setEntries(report.entries())
                .build();
    }

    /** What is known of the step before it has a manifest, by name. */
    Map<String, Double> numbers() {
        Map<String, Double> numbers = report.metrics().byName();
        numbers.putAll(seconds);
        numbers.put("reward_mean", training.meanReward());
        numbers.put("rollouts_trained", (double) report.rolloutsTrained());
        numbers.put("tokens_trained", (double) report.tokensTrained());
        numbers.put("learning_rate", report.learningRate());
        numbers.put(StepMetric.UPDATES.key(), (double) report.updates());
        report.figures().byName().forEach(numbers::put);
        report.stages().forEach(stage -> put("stage.", stage, numbers));
        return numbers;
    }

    private Map<String, Double> metrics(PolicyVersion manifest, long startedAtMs) {
        LearnerBatch batch = training.batch();
        Map<String, Double> metrics = report.metrics().byName();
        metrics.putAll(seconds);
        metrics.putAll(report.figures().stalenessQuantiles());
        metrics.put(StepMetric.UPDATES.key(), (double) report.updates());
        metrics.put(StepMetric.OPTIMIZER_STEPS.key(), (double) manifest.getOptimizerSteps());
        metrics.put(StepMetric.VERSIONS_BEHIND_ASSEMBLY.key(), (double) (startVersion - batch.getAssembledVersion()));
        training.members().stream()
                .mapToLong(member -> startedAtMs - member.trajectory().getFinishedAtMs())
                .average()
                .ifPresent(ageMs -> metrics.put(StepMetric.LAG_SECONDS.key(), ageMs / 1e3));
        report.stages().forEach(stage -> put("stage.", stage, metrics));
        batch.getStages().forEach(stage -> put("recorded.stage.", stage, metrics));
        return metrics;
    }

    private static @Nullable Double orAbsent(double value) {
        return Double.isNaN(value) ? null : value;
    }

    private static void put(String kind, StageReport stage, Map<String, Double> metrics) {
        String prefix = kind + stage.getStage() + ".";
        metrics.put(prefix + "tokens_seen", (double) stage.getTokensSeen());
        metrics.put(prefix + "tokens_changed", (double) stage.getTokensChanged());
        metrics.put(prefix + "sequences_seen", (double) stage.getSequencesSeen());
        metrics.put(prefix + "sequences_changed", (double) stage.getSequencesChanged());
        stage.getValues().forEach((name, value) -> metrics.put(prefix + name, value));
    }
}
