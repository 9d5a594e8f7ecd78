package dev.millrace.learner;

import dev.millrace.api.step.MadeStep;
import dev.millrace.api.step.StepObserver;
import dev.millrace.corrections.staleness.StepStaleness;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrajectoryUnavailableException;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepFigures;
import dev.millrace.learner.step.StepMetric;
import dev.millrace.learner.step.StepReport;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import java.time.Clock;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Makes of a batch a step, and commits what the step leaves behind. Used by the learner's thread. */
final class StepMaker {
    private static final Logger LOG = LoggerFactory.getLogger(StepMaker.class);

    private final BatchOptimizer optimizer;
    private final BatchWait wait;
    private final LearnerMeters meters;
    private final Clock clock;
    private StepObserver observer = step -> {};
    private double commitSeconds;

    /** @param wait is told of a batch that cannot be trained on, and of one that was */
    StepMaker(BatchOptimizer optimizer, BatchWait wait, LearnerMeters meters, Clock clock) {
        this.optimizer = optimizer;
        this.wait = wait;
        this.meters = meters;
        this.clock = clock;
    }

    /** Has somebody told of every step. */
    void observe(StepObserver newObserver) {
        observer = newObserver;
    }

    /** False if the batch cannot be trained on; it is set aside then. */
    boolean make(TrainingState state, IncomingBatch incoming, RunningLog log) {
        long startedAtMs = clock.millis();
        Map<String, Double> seconds = new HashMap<>();
        seconds.put(StepMetric.SECONDS_IDLE.key(), wait.idleSeconds());
        seconds.put(StepMetric.SECONDS_PREVIOUS_COMMIT.key(), commitSeconds);
        long fetchStart = System.nanoTime();
        TrainingBatch batch;
        try {
            state.requireKnown(incoming.batch());
            batch = TrainingBatch.of(incoming.batch(), log.trajectories().fetch(incoming.batch()));
        } catch (InconsistentBatchException | TrajectoryUnavailableException e) {
            wait.unusable(e);
            log.reader().setAside();
            return false;
        }
        seconds.put(StepMetric.SECONDS_FETCH.key(), (System.nanoTime() - fetchStart) / 1e9);
        meters.progress();

        StepReport report = optimizer.train(
                batch, state.newest().getVersion(), state.controls(), state.weights(), state.optimizer());
        long startVersion = state.newest().getVersion();
        TrainingRecord record = new TrainingRecord(batch, report, seconds, startVersion, incoming.rolloutsConsumed());
        observer.stepMade(new MadeStep(
                incoming.batch().getBatchId(), report.isStarved() ? startVersion : startVersion + 1, record.numbers()));
        meters.progress();

        long commitStart = System.nanoTime();
        TrainingStep step = committed(state, incoming, report, record, startedAtMs, log);
        commitSeconds = (System.nanoTime() - commitStart) / 1e9;
        log.reader().trained(incoming);
        wait.over();
        meters.committed(step);
        meters.progress();
        return true;
    }

    private TrainingStep committed(
            TrainingState state,
            IncomingBatch incoming,
            StepReport report,
            TrainingRecord record,
            long startedAtMs,
            RunningLog log) {
        long finishedAtMs = clock.millis();
        if (report.isStarved()) {
            TrainingStep step = record.of(state.newest(), startedAtMs, finishedAtMs);
            log.committer()
                    .commitStarved(state.newest(), step, incoming, log.reader().group());
            LOG.info("batch {} was starved: no token was left to train on", step.getBatchId());
            return step;
        }
        VersionCommitter.Committed committed = log.committer()
                .commit(
                        state.next(incoming, report, finishedAtMs),
                        state.weights(),
                        state.optimizer().state(),
                        manifest -> record.of(manifest, startedAtMs, finishedAtMs),
                        incoming,
                        log.reader().group());
        state.published(committed.manifest());
        log.foreign().made(committed.manifest());
        return committed.step();
    }

    /** Makes the training-log record of a step: what the batch was, what it did, and how long each phase took. */
    static final class TrainingRecord {
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
            metrics.put(
                    StepMetric.VERSIONS_BEHIND_ASSEMBLY.key(), (double) (startVersion - batch.getAssembledVersion()));
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
}
