package dev.millrace.learner;

import dev.millrace.api.step.MadeStep;
import dev.millrace.api.step.StepObserver;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrajectoryUnavailableException;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepMetric;
import dev.millrace.learner.step.StepReport;
import dev.millrace.schemas.TrainingStep;
import java.time.Clock;
import java.util.HashMap;
import java.util.Map;
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
}
