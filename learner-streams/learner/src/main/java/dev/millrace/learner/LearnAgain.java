package dev.millrace.learner;

import dev.millrace.learner.batch.BatchReader;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrajectoryFetcher;
import dev.millrace.learner.batch.TrajectoryUnavailableException;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepReport;
import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.VersionUnavailableException;
import java.time.Duration;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Goes from the newest checkpoint of the optimiser's state to the newest version: the batches between are learnt again, and must make the
 * weights that the manifests name. Commits nothing. Used by one thread.
 */
final class LearnAgain {
    private static final Logger LOG = LoggerFactory.getLogger(LearnAgain.class);
    /** The alarm about weights that came out otherwise. */
    static final String DIFFERS = "version-differs";

    private static final Duration WAIT = Duration.ofMillis(500);

    private final LogConnection connection;
    private final LearnerConfig config;
    private final BatchOptimizer optimizer;
    private final LearnerMeters meters;
    private final Duration limit;
    private final BooleanSupplier stopped;

    /** @param stopped looked at between steps; true ends it */
    LearnAgain(
            LogConnection connection,
            LearnerConfig config,
            BatchOptimizer optimizer,
            LearnerMeters meters,
            Duration limit,
            BooleanSupplier stopped) {
        this.connection = connection;
        this.config = config;
        this.optimizer = optimizer;
        this.meters = meters;
        this.limit = limit;
        this.stopped = stopped;
    }

    /**
     * Takes the state to the newest version, unless it is stopped before.
     *
     * @param state at a checkpoint; of no version after an exception
     * @param wakeup is told what ends a wait under way
     * @throws LostVersionsException if a batch or trajectory is gone, or other weights come out
     */
    void upTo(PolicyVersion newest, TrainingState state, PolicyFeed feed, Consumer<Runnable> wakeup) {
        long checkpoint = state.newest().getVersion();
        if (checkpoint == newest.getVersion()) {
            return;
        }
        LOG.info(
                "the newest checkpoint of the optimiser's state is version {}; its {} steps up to version {} are learnt again",
                checkpoint,
                newest.getVersion() - checkpoint,
                newest.getVersion());
        long begun = System.nanoTime();
        try (BatchReader reader = BatchReader.again(connection, state.newest(), newest, limit);
                TrajectoryFetcher trajectories = new TrajectoryFetcher(
                        connection, config.keptTrajectoryBytes(), connection.limit(config.trajectoryTimeoutMs()))) {
            wakeup.accept(() -> {
                reader.wakeup();
                trajectories.wakeup();
            });
            while (!stopped.getAsBoolean() && state.newest().getVersion() < newest.getVersion()) {
                Optional<IncomingBatch> next = reader.poll(WAIT);
                meters.progress();
                if (next.isPresent()) {
                    step(checkpoint, state, feed, next.get(), trajectories);
                    reader.trained(next.get());
                } else if (reader.hasReadAll() && !stopped.getAsBoolean()) {
                    throw lost(
                            checkpoint,
                            newest,
                            "batch " + reader.due() + " is no longer on "
                                    + connection.topics().batches());
                }
            }
        } catch (InconsistentBatchException | TrajectoryUnavailableException | VersionUnavailableException e) {
            throw lost(checkpoint, newest, String.valueOf(e.getMessage()));
        }
        LOG.info(
                "learnt again up to version {} in {} s",
                state.newest().getVersion(),
                (System.nanoTime() - begun) / 1_000_000_000);
    }

    private void step(
            long checkpoint,
            TrainingState state,
            PolicyFeed feed,
            IncomingBatch incoming,
            TrajectoryFetcher trajectories) {
        TrainingBatch batch = TrainingBatch.of(incoming.batch(), trajectories.fetch(incoming.batch()));
        long version = state.newest().getVersion();
        StepReport report = optimizer.train(batch, version, state.controls(), state.weights(), state.optimizer());
        meters.progress();
        if (report.isStarved()) {
            return;
        }
        PolicyVersion recorded = feed.manifest(version + 1);
        String found = VersionHash.of(state.weights());
        if (recorded.getBatchId() != incoming.batch().getBatchId()
                || !recorded.getWeights().getSha256().equals(found)) {
            throw new LostVersionsException(
                    DIFFERS,
                    "batch " + incoming.batch().getBatchId() + ", learnt again from version " + version
                            + ", makes the weights " + found + " here, and version " + recorded.getVersion()
                            + " was made of batch "
                            + recorded.getBatchId() + " with the weights "
                            + recorded.getWeights().getSha256()
                            + ": another kind of processor, another release or other settings of the learner; go on where version "
                            + recorded.getVersion()
                            + " was made, or begin a new epoch at the newest checkpoint, version " + checkpoint,
                    connection.command("rollback --to-version " + checkpoint));
        }
        state.published(recorded);
    }

    private LostVersionsException lost(long checkpoint, PolicyVersion newest, String why) {
        return new LostVersionsException(
                "version-lost",
                "training cannot go on from version " + newest.getVersion()
                        + ", the newest: the optimiser's state on the log is that of version " + checkpoint
                        + ", and what was learnt since cannot be learnt again (" + why
                        + "); begin a new epoch there, or bring back what is lost",
                connection.command("rollback --to-version " + checkpoint));
    }
}
