package dev.millrace.learner;

import dev.millrace.learner.batch.BatchReader;
import dev.millrace.learner.batch.ConsumedBatches;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrajectoryFetcher;
import dev.millrace.learner.batch.TrajectoryUnavailableException;
import dev.millrace.learner.repair.FirstVersion;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepReport;
import dev.millrace.log.LogConnection;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.ShapeText;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.VersionSize;
import dev.millrace.weights.VersionUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Restores the learner's state from the log: loads the newest checkpoint and re-learns the steps since. If the log lost a part,
 * raises an alarm with the way out, and retries. Used by the learner's thread.
 */
final class Restoration {
    private static final Logger LOG = LoggerFactory.getLogger(Restoration.class);
    private static final Duration AGAIN = Duration.ofSeconds(10);
    private static final Duration WAIT = Duration.ofMillis(500);
    /** Alarm: a re-learned step gave other weights. */
    private static final String DIFFERS = "version-differs";

    private static final List<String> LOST_VERSIONS = List.of("version-lost", DIFFERS, "chain-lost");

    private final LearnerContext context;
    private final LogConnection connection;
    private final BatchOptimizer optimizer;
    private final LearnerMeters meters;
    private final StopSignal stop;

    Restoration(LearnerContext context, BatchOptimizer optimizer, LearnerMeters meters, StopSignal stop) {
        this.context = context;
        this.connection = context.connection();
        this.optimizer = optimizer;
        this.meters = meters;
        this.stop = stop;
    }

    /** The state at the newest version; empty only if the learner was stopped. */
    Optional<TrainingState> restored(PolicyFeed feed, VersionCommitter committer) {
        String topic = connection.topics().policyVersions();
        while (!stop.isStopped()) {
            long begun = System.nanoTime();
            try {
                Restored found = begun(feed, committer);
                TrainingState state = found.state();
                PolicyVersion checkpoint = state.newest();
                keepReference(found.newest());
                learnAgain(found.newest(), state, feed);
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
                                e.alarm,
                                topic,
                                String.valueOf(e.getMessage()),
                                e.remedy == null ? connection.command("repair") : e.remedy);
                // a long attempt is not repeated at once, and one that gave other weights never
                long again = System.nanoTime() + Math.max(AGAIN.toNanos(), System.nanoTime() - begun);
                do {
                    meters.progress();
                    stop.await(AGAIN);
                } while (!stop.isStopped() && (e.alarm.equals(DIFFERS) || System.nanoTime() < again));
            }
        }
        return Optional.empty();
    }

    /**
     * Loads the newest checkpoint. Without a version, publishes the initial weights as version 0, or in a later epoch the version
     * that it starts from.
     *
     * @param feed opened after the committer
     * @param committer has fenced every older learner, so that the newest version stays the newest
     * @throws LostVersionsException if the log has lost the newest version, or all versions
     */
    Restored begun(PolicyFeed feed, VersionCommitter committer) {
        Optional<PolicyVersion> newest = feed.newestCommitted();
        if (newest.isPresent()) {
            return new Restored(resumed(feed, newest.get()), newest.get());
        }
        TrainingState begun = connection.lineage().parent().isPresent() ? ofEpoch(committer) : fresh(committer);
        return new Restored(begun, begun.newest());
    }

    /**
     * @param state at the newest checkpoint
     * @param newest newest committed version
     */
    record Restored(TrainingState state, PolicyVersion newest) {}

    private TrainingState resumed(PolicyFeed feed, PolicyVersion newest) {
        requireSamePolicy(newest);
        AdamW adam = optimizer.newOptimizer();
        PolicyVersion checkpoint;
        Weights weights;
        try {
            checkpoint = Checkpoints.atOrBefore(feed::manifest, newest.getVersion());
            weights = optimizer.trainable(feed.load(checkpoint.getVersion()));
            if (checkpoint.getOptimizerSteps() > 0) { // before the first it is as a new one
                adam.adopt(feed.loadOptimizer(checkpoint.getVersion()));
            }
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new LostVersionsException(
                    "version-lost",
                    "training cannot continue from version " + newest.getVersion() + ", the newest: " + e.getMessage(),
                    null);
        }
        LOG.info(
                "continues from version {} ({}), made by batch {}",
                newest.getVersion(),
                newest.getWeights().getSha256(),
                newest.getBatchId());
        return new TrainingState(weights, adam, checkpoint);
    }

    /** Publishes the first version of an epoch whose creator ended before it did. */
    private TrainingState ofEpoch(VersionCommitter committer) {
        FirstVersion first;
        try {
            first = FirstVersion.parentOf(connection, context.weights());
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new LostVersionsException("version-lost", String.valueOf(e.getMessage()), null);
        }
        requireSamePolicy(first.manifest());
        PolicyVersion manifest = first.publish(committer, context.clock().millis());
        AdamW adam = optimizer.newOptimizer();
        adam.adopt(first.optimizer());
        LOG.info(
                "starts epoch {} with version {} of epoch {} ({})",
                manifest.getEpoch(),
                manifest.getVersion(),
                manifest.getParentEpoch(),
                manifest.getWeights().getSha256());
        return new TrainingState(optimizer.trainable(first.weights()), adam, manifest);
    }

    private TrainingState fresh(VersionCommitter committer) {
        requireNothingLearnt();
        AdamW adam = optimizer.newOptimizer();
        Weights weights = context.initial().weights().as(context.weights().dtype());
        VersionFacts facts = new VersionFacts(
                0, -1, context.initial().tokenizerHash(), 0, 0, context.clock().millis());
        PolicyVersion manifest = committer.commitInitial(facts, weights, adam.state());
        LOG.info(
                "published the initial weights as version 0 ({})",
                manifest.getWeights().getSha256());
        return new TrainingState(optimizer.trainable(weights), adam, manifest);
    }

    private static String described(Optional<LoraShape> adapter) {
        return adapter.map(low ->
                        "an adapter of rank " + low.rank() + ", alpha " + low.alpha() + " to " + low.targetModules())
                .orElse("the policy's own weights");
    }

    /** Refuses to restart a run from its initial weights if its versions are gone. */
    private void requireNothingLearnt() {
        ConsumedBatches.lastStep(connection, connection.limit(context.weights().readTimeoutMs()))
                .ifPresent(step -> {
                    throw new LostVersionsException(
                            "chain-lost",
                            connection.topics().policyVersions() + " has no version of this epoch, but "
                                    + connection.topics().trainingLog() + " says that batch " + step.getBatchId()
                                    + " made version " + step.getVersion() + ": the versions were lost or deleted",
                            null);
                });
    }

    private void requireSamePolicy(PolicyVersion newest) {
        DecoderShape published = PolicyFeed.shapeOf(newest);
        if (!published.equals(context.initial().shape())) {
            throw new IllegalArgumentException("the run's version " + newest.getVersion() + " is of the shape "
                    + newest.getShape() + ", this learner is configured for "
                    + ShapeText.of(context.initial().shape())
                    + "; give it the run's shape, or start another run");
        }
        Dtype dtype = PolicyFeed.dtypeOf(newest);
        if (dtype != context.weights().dtype()) {
            throw new IllegalArgumentException(
                    "the run's version " + newest.getVersion() + " is of " + dtype + ", and weights.dtype is "
                            + context.weights().dtype() + " here; give it the run's, or start another run");
        }
        Optional<LoraShape> adapter = PolicyFeed.adapterOf(newest);
        if (newest.getOptimizerSteps() > 0 && !adapter.equals(optimizer.adapters())) {
            throw new IllegalArgumentException("the run's version " + newest.getVersion() + " is "
                    + described(adapter) + ", and learner.lora asks for " + described(optimizer.adapters())
                    + "; give it the run's rank, alpha and target_modules, or start another run");
        }
        if (!newest.getTokenizerHash().equals(context.initial().tokenizerHash())) {
            throw new IllegalArgumentException("the run's version " + newest.getVersion() + " has the vocabulary "
                    + newest.getTokenizerHash() + ", this learner is configured for "
                    + context.initial().tokenizerHash()
                    + "; give it the run's tokenizer, or start another run");
        }
    }

    private void keepReference(PolicyVersion newest) {
        OptionalLong version = optimizer.referenceVersion();
        if (version.isPresent()) {
            optimizer.useReference(referenceWeights(version.getAsLong(), newest.getVersion()));
        }
    }

    /** Bounds the time between checkpoints by half the retention of the batches that a restart re-learns. */
    private void scheduleCheckpoints(VersionCommitter committer) {
        int every = context.weights()
                .checkpointEvery(VersionSize.of(context.initial().shape(), optimizer.adapters()));
        if (every > 1) {
            Duration kept = batchesRetention();
            long maxSteps = context.config().maxSteps();
            committer.checkpointWithin(kept.toMillis() / 2, maxSteps > 0 ? maxSteps : Long.MAX_VALUE);
            LOG.info("the optimiser's state goes to the log with every {}th version (weights.checkpoint_every)", every);
        }
    }

    private Duration readLimit() {
        return connection.limit(context.weights().readTimeoutMs());
    }

    /**
     * The shorter retention of batches and trajectories on the cluster; {@code Long.MAX_VALUE} ms if unlimited.
     *
     * @throws IllegalStateException if the cluster does not answer within the limit
     */
    private Duration batchesRetention() {
        List<ConfigResource> topics = Stream.of(
                        connection.topics().batches(), connection.topics().trajectories())
                .map(topic -> new ConfigResource(ConfigResource.Type.TOPIC, topic))
                .toList();
        try (Admin admin = Admin.create(connection.as("restoration").admin())) {
            Map<ConfigResource, Config> found =
                    admin.describeConfigs(topics).all().get(readLimit().toMillis(), TimeUnit.MILLISECONDS);
            return Duration.ofMillis(found.values().stream()
                    .mapToLong(config -> Long.parseLong(
                            config.get(TopicConfig.RETENTION_MS_CONFIG).value()))
                    .filter(ms -> ms >= 0)
                    .min()
                    .orElse(Long.MAX_VALUE));
        } catch (ExecutionException | TimeoutException e) {
            throw new IllegalStateException(
                    "cannot read how long " + topics + " keep their records, so when a checkpoint is due is unknown: "
                            + e,
                    e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while reading the retention of topics", e);
        }
    }

    /**
     * Re-learns the batches between the checkpoint and the newest version, which must give the weights of their manifests.
     * Commits nothing. Ends early if stopped.
     *
     * @param state at a checkpoint; undefined after an exception
     * @throws LostVersionsException if a batch or trajectory is gone, or the weights differ
     */
    private void learnAgain(PolicyVersion newest, TrainingState state, PolicyFeed feed) {
        long checkpoint = state.newest().getVersion();
        if (checkpoint == newest.getVersion()) {
            return;
        }
        LOG.info(
                "the newest checkpoint of the optimiser's state is version {}; its {} steps up to version {} are retrained",
                checkpoint,
                newest.getVersion() - checkpoint,
                newest.getVersion());
        long begun = System.nanoTime();
        try (BatchReader reader = new BatchReader(connection, state.newest(), newest.getVersion(), readLimit());
                TrajectoryFetcher trajectories = new TrajectoryFetcher(
                        connection,
                        context.config().keptTrajectoryBytes(),
                        connection.limit(context.config().trajectoryTimeoutMs()))) {
            stop.wakes(() -> {
                reader.wakeup();
                trajectories.wakeup();
            });
            while (!stop.isStopped() && state.newest().getVersion() < newest.getVersion()) {
                Optional<IncomingBatch> next = reader.poll(WAIT);
                meters.progress();
                if (next.isPresent()) {
                    step(checkpoint, state, feed, next.get(), trajectories);
                    reader.trained(next.get());
                } else if (reader.hasReadAll() && !stop.isStopped()) {
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
                "retrained up to version {} in {} s",
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
                    "batch " + incoming.batch().getBatchId() + ", retrained from version " + version
                            + ", makes the weights " + found + " here, and version " + recorded.getVersion()
                            + " was made from batch "
                            + recorded.getBatchId() + " with the weights "
                            + recorded.getWeights().getSha256()
                            + ": another processor type, release or settings of the learner; continue where version "
                            + recorded.getVersion()
                            + " was made, or begin a new epoch at the newest checkpoint, version " + checkpoint,
                    connection.command("rollback --to-version " + checkpoint));
        }
        state.published(recorded);
    }

    private LostVersionsException lost(long checkpoint, PolicyVersion newest, String why) {
        return new LostVersionsException(
                "version-lost",
                "training cannot continue from version " + newest.getVersion()
                        + ", the newest: the optimiser's state on the log is that of version " + checkpoint
                        + ", and the later steps cannot be repeated (" + why
                        + "); begin a new epoch there, or restore the lost records",
                connection.command("rollback --to-version " + checkpoint));
    }

    /**
     * Loads the version that anchors KL into buffers of its own.
     *
     * @param newest the run's newest version
     * @throws IllegalArgumentException if there is no such version, or its weights are no longer kept
     */
    private Weights referenceWeights(long version, long newest) {
        if (version > newest) {
            throw new IllegalArgumentException(
                    "kl.reference.version is " + version + ", but the run's newest version is " + newest
                            + "; choose one that exists, such as 0, the initial weights");
        }
        try (PolicyFeed feed = new PolicyFeed(connection, context.weights())) {
            // a transaction is committed before its markers are in every log
            feed.awaitFirst(connection.patience(), () -> false);
            return feed.load(version);
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new IllegalArgumentException(
                    "kl.reference.version is " + version + ", whose weights are not available ("
                            + e.getMessage()
                            + "); keep weights longer, choose a version that is still there, or have the topology join"
                            + " reference scores (kl.reference.kind=recorded)",
                    e);
        }
    }

    /** The log has lost records that a learner needs to begin; it waits for a repair. */
    static final class LostVersionsException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private final String alarm;
        private final @Nullable String remedy;

        /** @param remedy command that always repairs the loss; null if it must be diagnosed first */
        LostVersionsException(String alarm, String message, @Nullable String remedy) {
            super(message);
            this.alarm = alarm;
            this.remedy = remedy;
        }
    }
}
