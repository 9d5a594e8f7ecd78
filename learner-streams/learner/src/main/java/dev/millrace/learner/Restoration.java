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
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.VersionSize;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings training to where it stands on the log: the newest checkpoint, and what was learnt since. Where the log has lost what that
 * takes, an alarm names the way out, and it is tried again. Used by the learner's thread.
 */
final class Restoration {
    private static final Logger LOG = LoggerFactory.getLogger(Restoration.class);
    private static final Duration AGAIN = Duration.ofSeconds(10);
    private static final List<String> LOST_VERSIONS = List.of("version-lost", LearnAgain.DIFFERS, "chain-lost");

    private final LogConnection connection;
    private final LearnerConfig config;
    private final WeightsConfig weightsConfig;
    private final InitialPolicy initial;
    private final BatchOptimizer optimizer;
    private final LearnerMeters meters;
    private final StopSignal stop;
    private final Clock clock;

    Restoration(
            LogConnection connection,
            LearnerConfig config,
            WeightsConfig weightsConfig,
            InitialPolicy initial,
            BatchOptimizer optimizer,
            LearnerMeters meters,
            StopSignal stop,
            Clock clock) {
        this.connection = connection;
        this.config = config;
        this.weightsConfig = weightsConfig;
        this.initial = initial;
        this.optimizer = optimizer;
        this.meters = meters;
        this.stop = stop;
        this.clock = clock;
    }

    /** Where training stands on the log; empty only if the learner was stopped. */
    Optional<TrainingState> restored(PolicyFeed feed, VersionCommitter committer) {
        String topic = connection.topics().policyVersions();
        while (!stop.isStopped()) {
            long begun = System.nanoTime();
            try {
                CheckpointRestore.Restored found = begun(feed, committer);
                TrainingState state = found.state();
                PolicyVersion checkpoint = state.newest();
                keepReference(found.newest());
                new LearnAgain(connection, config, optimizer, meters, readLimit(), stop::isStopped)
                        .upTo(found.newest(), state, feed, stop::wakes);
                if (stop.isStopped()) {
                    return Optional.empty();
                }
                committer.continueFrom(state.newest(), state.weights(), checkpoint);
                scheduleCheckpoints(committer);
                LOST_VERSIONS.forEach(alarm -> connection.alarms().lower(alarm, topic));
                return Optional.of(state);
            } catch (LostVersionsException e) {
                connection
                        .alarms()
                        .raise(
                                e.alarm(),
                                topic,
                                String.valueOf(e.getMessage()),
                                e.remedy().orElseGet(() -> connection.command("repair")));
                // what took long is not tried at once again, and where other weights came out, never
                long again = System.nanoTime() + Math.max(AGAIN.toNanos(), System.nanoTime() - begun);
                do {
                    meters.progress();
                    stop.await(AGAIN);
                } while (!stop.isStopped() && (e.alarm().equals(LearnAgain.DIFFERS) || System.nanoTime() < again));
            }
        }
        return Optional.empty();
    }

    /**
     * The newest checkpoint; publishes the initial weights as version 0 if the run has no version yet.
     *
     * @throws LostVersionsException if the log has lost the newest version, or all of them
     */
    CheckpointRestore.Restored begun(PolicyFeed feed, VersionCommitter committer) {
        return new CheckpointRestore(connection, weightsConfig, initial, clock).find(feed, committer, optimizer);
    }

    private void keepReference(PolicyVersion newest) {
        OptionalLong version = optimizer.referenceVersion();
        if (version.isPresent()) {
            optimizer.useReference(
                    new ReferencePolicy(connection, weightsConfig).weights(version.getAsLong(), newest.getVersion()));
        }
    }

    /** What is learnt again must still be there, and half of the time that it is kept leaves as much for a learner that is away. */
    private void scheduleCheckpoints(VersionCommitter committer) {
        int every = weightsConfig.checkpointEvery(VersionSize.of(initial.shape(), optimizer.adapters()));
        if (every > 1) {
            Duration kept = BatchesRetention.of(connection, readLimit());
            committer.checkpointWithin(kept.toMillis() / 2, config.maxSteps() > 0 ? config.maxSteps() : Long.MAX_VALUE);
            LOG.info("the optimiser's state goes to the log with every {}th version (weights.checkpoint_every)", every);
        }
    }

    private Duration readLimit() {
        return connection.limit(weightsConfig.readTimeoutMs());
    }

    /** How long the log keeps what a step is learnt from. */
    static final class BatchesRetention {
        private BatchesRetention() {}

        /**
         * The shorter retention of batches and trajectories, as the cluster has it; very long if neither ends.
         *
         * @throws IllegalStateException if the cluster does not say within the limit
         */
        public static Duration of(LogConnection connection, Duration limit) {
            List<ConfigResource> topics = Stream.of(
                            connection.topics().batches(), connection.topics().trajectories())
                    .map(topic -> new ConfigResource(ConfigResource.Type.TOPIC, topic))
                    .toList();
            try (Admin admin = Admin.create(connection.admin())) {
                Map<ConfigResource, Config> found =
                        admin.describeConfigs(topics).all().get(limit.toMillis(), TimeUnit.MILLISECONDS);
                return Duration.ofMillis(found.values().stream()
                        .mapToLong(config -> Long.parseLong(
                                config.get(TopicConfig.RETENTION_MS_CONFIG).value()))
                        .filter(ms -> ms >= 0)
                        .min()
                        .orElse(Long.MAX_VALUE));
            } catch (ExecutionException | TimeoutException e) {
                throw new IllegalStateException(
                        "it is not known how long " + topics + " keep their records, and so when a checkpoint is due: "
                                + e,
                        e);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while the cluster was asked how long it keeps records", e);
            }
        }
    }

    /**
     * Goes from the newest checkpoint of the optimiser's state to the newest version: the batches between are learnt again, and must make the
     * weights that the manifests name. Commits nothing. Used by one thread.
     */
    static final class LearnAgain {
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

    /** The weights of the version that anchors KL, from the log. */
    static final class ReferencePolicy {
        private final LogConnection connection;
        private final WeightsConfig config;

        ReferencePolicy(LogConnection connection, WeightsConfig config) {
            this.connection = connection;
            this.config = config;
        }

        /**
         * Loads them into buffers of their own.
         *
         * @param newest the run's newest version
         * @throws IllegalArgumentException if there is no such version, or its weights are no longer kept
         */
        Weights weights(long version, long newest) {
            if (version > newest) {
                throw new IllegalArgumentException(
                        "kl.reference.version is " + version + ", but the run's newest version is " + newest
                                + "; choose one that exists, such as 0, the initial weights");
            }
            try (PolicyFeed feed = new PolicyFeed(connection, config)) {
                // a transaction is committed before its markers are in every log, so the version just published may not
                // be
                // seen yet
                feed.awaitFirst(connection.patience(), () -> false);
                return feed.load(version);
            } catch (VersionUnavailableException e) {
                throw new IllegalArgumentException(
                        "kl.reference.version is " + version + ", whose weights cannot be had ("
                                + e.getMessage()
                                + "); keep weights longer, choose a version that is still there, or have the topology join"
                                + " reference scores (kl.reference.kind=recorded)",
                        e);
            }
        }
    }
}
