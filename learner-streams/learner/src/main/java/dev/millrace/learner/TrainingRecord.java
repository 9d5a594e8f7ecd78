package dev.millrace.learner;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.StepReport;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import java.util.Map;

/** Makes the training-log record of a step: what the batch was, what it did, and how long each phase took. */
final class TrainingRecord {
    private final TrainingBatch training;
    private final StepReport report;
    private final Map<String, Double> seconds;

    /** @param seconds by metric name, each beginning with {@code seconds_} */
    TrainingRecord(TrainingBatch training, StepReport report, Map<String, Double> seconds) {
        this.training = training;
        this.report = report;
        this.seconds = seconds;
    }

    TrainingStep of(PolicyVersion manifest, long startedAtMs, long finishedAtMs) {
        LearnerBatch batch = training.batch();
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
                .setStalenessMean(batch.getStalenessMean())
                .setStalenessMax(batch.getStalenessMax())
                .setEssRatio(report.essRatio())
                .setLearningRate(report.learningRate())
                .setMetrics(metrics(manifest))
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
        numbers.put("updates", (double) report.updates());
        report.stages().forEach(stage -> put("stage.", stage, numbers));
        return numbers;
    }

    private Map<String, Double> metrics(PolicyVersion manifest) {
        LearnerBatch batch = training.batch();
        Map<String, Double> metrics = report.metrics().byName();
        metrics.putAll(seconds);
        metrics.put("updates", (double) report.updates());
        metrics.put("skipped_update", report.updates() == 0 ? 1.0 : 0.0);
        metrics.put("optimizer_steps", (double) manifest.getOptimizerSteps());
        metrics.put("versions_behind_assembly", (double) (manifest.getParentVersion() - batch.getAssembledVersion()));
        report.stages().forEach(stage -> put("stage.", stage, metrics));
        if (report.entries() != null) { // decided anew: what the batch's own stages said, beside
            batch.getStages().forEach(stage -> put("recorded.stage.", stage, metrics));
        }
        return metrics;
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
