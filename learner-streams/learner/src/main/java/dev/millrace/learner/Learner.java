package dev.millrace.learner;

import dev.millrace.api.step.CompletedStep;
import dev.millrace.api.step.StepObserver;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.staleness.StepStaleness;
import dev.millrace.learner.batch.BatchReader;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrajectoryFetcher;
import dev.millrace.learner.batch.TrajectoryUnavailableException;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.LoraStart;
import dev.millrace.learner.step.StepFigures;
import dev.millrace.learner.step.StepMetric;
import dev.millrace.learner.step.StepReport;
import dev.millrace.log.Alarms;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Patience;
import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.log.run.RootCause;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.log.transaction.Incarnation;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.stages.StageReports;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.PolicyPartition;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.VersionUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/**
 * The role learner: trains a version on each batch, in order, and commits both in one transaction. A batch without a
 * trained token is starved: it is consumed and makes no version.
 *
 * <p>{@link VersionCommitter} writes everything that a step makes in one Kafka transaction, under one transactional id per
 * run: weights, optimiser state, manifest, training-log record and the batch's offset. After a kill the next learner resumes
 * from the newest version and the batch after it: no batch is trained on twice, no version published twice. A second learner
 * fences the first, which then stops.
 *
 * <p>The chain of manifests decides the next step. Foreign records become dead letters. If the log lost its tail, the
 * learner recomputes the missing versions from the batches that remain. If one of these is lost too, it raises an alarm that
 * names the way out, and waits.
 *
 * <p>Given the same batches, configuration and initial weights, the weights are the same bit for bit on the same kind of
 * machine; {@link dev.millrace.learner.step} lists what the bits depend on.
 *
 * <p>{@link #run()} may be called once; {@link #stop()} from any thread and at any time. A stop aborts the current step,
 * which the next start repeats.
 */
public final class Learner implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Learner.class);

    private static final Duration WAIT = Duration.ofMillis(500);
    private static final Duration WAIT_WHILE_COMMITTING = Duration.ofMillis(5);
    /** Idle time after which the learner checks whether the log still has its newest version. */
    private static final long LOOK_AROUND_NANOS = 2_000_000_000L;

    private static final String BATCH_LOST = "batch-lost";
    private static final String BATCH_UNUSABLE = "batch-unusable";
    private static final String STEP_UNDECIDED = "step-undecided";

    private final LearnerContext context;
    private final LogConnection connection;
    private final Alarms alarms;
    private final LearnerConfig config;
    private final LearnerMeters meters;
    private final BatchOptimizer optimizer;
    private final Incarnation incarnation = new Incarnation();
    /** Hashes of the weights published by earlier attempts of this process. */
    private final Set<String> madeBefore = new HashSet<>();

    private final Patience patience;
    private final List<Long> kept = new ArrayList<>();
    private final StopSignal stop = new StopSignal();
    private final Restoration restoration;
    private StepObserver observer = step -> {};

    /**
     * Compiles the graphs without connecting.
     *
     * @param algorithm the run's, as in the topology; decides each batch again at the version that its step starts from
     */
    public Learner(LearnerContext context, Algorithm algorithm, Engine engine) {
        this.context = context;
        this.connection = context.connection();
        this.alarms = connection.alarms();
        this.config = context.config();
        this.meters = new LearnerMeters(context.registry(), alarms.begin("learner"));
        this.patience = new Patience("learner", connection.patience(), alarms, () -> RootCause.of(connection));
        algorithm.doubts().forEach(LOG::warn);
        InitialPolicy initial = context.initial();
        this.optimizer = new BatchOptimizer(
                engine,
                initial.shape(),
                config.lora().shape().map(low -> new LoraStart(low, initial.seed())),
                config.step(),
                algorithm);
        optimizer.onProgress(meters::progress);
        this.restoration = new Restoration(context, optimizer, meters, stop);
    }

    /**
     * Trains until {@link #stop()} or {@code max_steps}. If the log has lost the next batch, raises an alarm and waits.
     *
     * @throws dev.millrace.log.transaction.TakenOverException if another learner has taken over
     * @throws dev.millrace.log.PatienceOverException if the log was away for too long
     * @throws dev.millrace.learner.step.NonFiniteStepException if a step would make the weights NaN or infinite
     */
    public void run() {
        try {
            boolean isOver = false;
            while (!isOver && !stop.isStopped()) {
                isOver = runAttempt();
            }
        } catch (CancellationException e) {
            if (!stop.isStopped()) {
                throw e;
            }
            LOG.info("stopped within a step; it is repeated at the next start");
        }
    }

    /** Trains until a stop or a Kafka failure; true to end, false to retry from the newest commit. */
    private boolean runAttempt() {
        try {
            return trainFromNewest();
        } catch (CancellationException e) {
            throw e;
        } catch (RuntimeException e) {
            return !patience.again(e, stop::isStopped);
        }
    }

    /** Trains from the newest version; false to restore again. */
    private boolean trainFromNewest() {
        meters.restoring();
        ForeignManifests foreign = new ForeignManifests(connection, madeBefore, readLimit());
        try (VersionCommitter committer = newCommitter();
                PolicyFeed feed = new PolicyFeed(connection, context.weights(), foreign::add)) {
            Optional<TrainingState> restored = restoration.restored(feed, committer); // at the newest version
            if (restored.isEmpty()) {
                return true;
            }
            TrainingState state = restored.get();
            try (VersionRetention retention = new VersionRetention(
                            connection, context.weights(), fixedVersions(), context.registry(), context.clock());
                    BatchReader reader = new BatchReader(
                            connection, state.newest(), state.newest().getVersion(), readLimit());
                    TrajectoryFetcher trajectories = new TrajectoryFetcher(
                            connection, config.keptTrajectoryBytes(), connection.limit(config.trajectoryTimeoutMs()))) {
                stop.wakes(() -> {
                    reader.wakeup();
                    trajectories.wakeup();
                });
                committer.learntBefore(reader.consumed().learntBefore());
                retention.start();
                patience.reopened();
                try {
                    return new Attempt(state, feed, committer, reader, trajectories, foreign).train();
                } finally {
                    MDC.remove("version"); // or threads of the next attempt would begin with it
                    madeBefore.addAll(foreign.made());
                    if (stop.isStopped()) {
                        checkpoint(state, committer);
                    }
                }
            }
        }
    }

    private VersionCommitter newCommitter() {
        return new VersionCommitter(connection, context.weights(), incarnation, context.producers());
    }

    /**
     * Makes the newest version a checkpoint, so that the next learner repeats no step and may use other settings. If that
     * fails, or a step has begun to change the state, the next learner repeats the steps since the last checkpoint.
     */
    private void checkpoint(TrainingState state, VersionCommitter committer) {
        PolicyVersion newest = state.newest();
        if (Checkpoints.is(newest)
                || state.optimizer().state().steps() != newest.getOptimizerSteps()
                || !VersionHash.of(state.weights()).equals(newest.getWeights().getSha256())) {
            return;
        }
        try {
            state.published(committer.commitState(newest, state.optimizer().state()));
            LOG.info("the optimiser's state of version {} is on the log", newest.getVersion());
        } catch (RuntimeException e) {
            LOG.warn(
                    "the optimiser's state of version {} could not be written; the next start retrains from the"
                            + " last one written",
                    newest.getVersion(),
                    e);
        }
    }

    private Duration readLimit() {
        return connection.limit(context.weights().readTimeoutMs());
    }

    /** Retains a version and all later ones; call before {@link #run()}. */
    public void keepVersion(long version) {
        kept.add(version);
    }

    /** Sets the observer of every step; call before {@link #run()}. */
    public void observe(StepObserver newObserver) {
        observer = newObserver;
    }

    private List<Long> fixedVersions() {
        List<Long> fixed = new ArrayList<>(kept);
        optimizer.adapters().ifPresent(put -> fixed.add(0L)); // their base
        optimizer.referenceVersion().ifPresent(fixed::add);
        return fixed;
    }

    /**
     * Publishes the initial weights as version 0, if the run has no version yet, and fences the running learner, so
     * that another trainer can take over the run.
     */
    public void publishFirst() {
        try (VersionCommitter committer = newCommitter();
                PolicyFeed feed = new PolicyFeed(connection, context.weights())) {
            restoration.begun(feed, committer);
        }
    }

    /** Asks {@link #run()} to end soon; returns at once. */
    public void stop() {
        stop.stop();
        optimizer.cancel();
    }

    /** Frees the graphs and removes the gauges; call after {@link #run()} has returned. */
    @Override
    public void close() {
        optimizer.close();
        meters.removeGauges();
    }

    /** Training from the newest version until the state must be restored again. Confined to the learner's thread. */
    private final class Attempt {
        private final TrainingState state;
        private final PolicyFeed feed;
        private final VersionCommitter committer;
        private final BatchReader reader;
        private final TrajectoryFetcher trajectories;
        private final ForeignManifests foreign;
        /** Wait for the last batch. */
        private double idleSeconds;
        /** Wait for the last commit. */
        private double commitSeconds;

        private @Nullable TrainingStep committing;

        Attempt(
                TrainingState state,
                PolicyFeed feed,
                VersionCommitter committer,
                BatchReader reader,
                TrajectoryFetcher trajectories,
                ForeignManifests foreign) {
            this.state = state;
            this.feed = feed;
            this.committer = committer;
            this.reader = reader;
            this.trajectories = trajectories;
            this.foreign = foreign;
        }

        /** Trains until stopped; false if the log diverged from this learner and the state must be restored. */
        boolean train() {
            meters.version(state.newest().getVersion());
            meters.ready();
            while (!stop.isStopped() && !finished()) {
                Optional<IncomingBatch> next = next();
                if (next.isPresent()) {
                    step(next.get());
                } else if (!stop.isStopped()) {
                    lowerAlarms();
                    return false;
                }
            }
            settle();
            boolean isOnChain = answerForeign() && (stop.isStopped() || !isMissing(LOOK_AROUND_NANOS));
            if (!isOnChain && !stop.isStopped()) {
                return false;
            }
            LOG.info(
                    "ends with version {}{}",
                    state.newest().getVersion(),
                    stop.isStopped() ? "" : ": max_steps are reached");
            return true;
        }

        private boolean finished() {
            return config.maxSteps() > 0 && state.newest().getVersion() >= config.maxSteps();
        }

        /** The next batch; empty after a stop, or if the state must be restored. */
        private Optional<IncomingBatch> next() {
            long start = System.nanoTime();
            long reported = start;
            long before = start;
            Optional<IncomingBatch> next = Optional.empty();
            boolean isOver = false;
            while (next.isEmpty() && !stop.isStopped() && !isOver) {
                if (!answerForeign()) {
                    return Optional.empty();
                }
                next = reader.poll(committer.isEnded() ? WAIT : WAIT_WHILE_COMMITTING);
                if (next.isEmpty() && committer.isEnded()) {
                    settle();
                }
                long now = System.nanoTime();
                meters.idle((now - before) / 1e9);
                meters.progress();
                isOver = next.isEmpty() && now - start > LOOK_AROUND_NANOS && (isOvertaken() || isMissing(0));
                before = now;
                if (next.isEmpty() && now - start > connection.patience().toNanos()) {
                    reportMissing((now - start) / 1_000_000_000);
                }
                if (next.isEmpty() && now - reported > config.idleReportMs() * 1_000_000) {
                    LOG.info(
                            "has waited {} s for batch {}; the newest version is {}",
                            (now - start) / 1_000_000_000,
                            reader.due(),
                            state.newest().getVersion());
                    reported = now;
                }
            }
            idleSeconds = (before - start) / 1e9;
            return next;
        }

        private boolean isOvertaken() {
            if (reader.isOvertaken()) {
                LOG.info("another learner consumed batches from {} on; restarts", reader.due());
                return true;
            }
            Optional<PolicyVersion> newer = feed.newest()
                    .filter(newest -> newest.getVersion() > state.newest().getVersion());
            newer.ifPresent(
                    version -> LOG.info("another learner published version {}; restarts", version.getVersion()));
            return newer.isPresent();
        }

        private void reportMissing(long seconds) {
            if (!reader.ahead().isEmpty() || reader.isDueAgain()) {
                String sentence = "batch " + reader.due() + " is not on the log and has not come for " + seconds + " s"
                        + (reader.ahead().isEmpty()
                                ? "; its version was lost and must be retrained"
                                : "; batches " + reader.ahead() + " wait for it");
                alarms.raise(BATCH_LOST, connection.topics().batches(), sentence, connection.command("repair"));
            }
        }

        /**
         * Whether the log lacks the last committed version: its transaction was aborted on the log, which the producer does not
         * notice.
         *
         * @param limitNanos longest wait for it
         */
        private boolean isMissing(long limitNanos) {
            long version = state.newest().getVersion();
            if (feed.awaitNewerThan(version - 1, Duration.ofNanos(limitNanos)).isPresent()) {
                return false;
            }
            try (PolicyFeed whole = new PolicyFeed(connection, context.weights())) {
                boolean isMissing =
                        whole.newestCommitted().map(PolicyVersion::getVersion).orElse(-1L) < version;
                if (isMissing) {
                    LOG.warn(
                            "version {} was committed, and {} does not have it: the log lost its end, or an"
                                    + " administrator aborted its transaction; restarts from the log",
                            version,
                            connection.topics().policyVersions());
                }
                return isMissing;
            }
        }

        /**
         * Writes foreign manifests to the dead letters, and restores their keys.
         *
         * @return false if the newest version itself is not on the chain
         */
        private boolean answerForeign() {
            if (foreign.isEmpty()) {
                return true;
            }
            settle();
            PolicyVersion newest = state.newest();
            Optional<List<ProducerRecord<byte[], byte[]>>> records = foreign.answers(feed, newest);
            if (records.isEmpty()) {
                LOG.warn(
                        "version {}, which this learner made, does not extend the chain that is on {} now; restarts"
                                + " from there",
                        newest.getVersion(),
                        connection.topics().policyVersions());
                return false;
            }
            if (!records.get().isEmpty()) {
                committer.commit("writes for foreign manifests", records.get());
            }
            return true;
        }

        /** Trains on a batch and commits the version; sets aside a batch that cannot be trained on. */
        private void step(IncomingBatch incoming) {
            long startedAtMs = context.clock().millis();
            Map<String, Double> seconds = new HashMap<>();
            seconds.put(StepMetric.SECONDS_IDLE.key(), idleSeconds);
            long fetchStart = System.nanoTime();
            TrainingBatch batch;
            StepReport report;
            try {
                state.requireKnown(incoming.batch());
                batch = TrainingBatch.of(incoming.batch(), trajectories.fetch(incoming.batch()));
                seconds.put(StepMetric.SECONDS_FETCH.key(), (System.nanoTime() - fetchStart) / 1e9);
                meters.progress();
                report = optimizer.train(
                        batch, state.newest().getVersion(), state.controls(), state.weights(), state.optimizer());
            } catch (InconsistentBatchException | TrajectoryUnavailableException e) {
                alarms.raise(
                        BATCH_UNUSABLE,
                        connection.topics().batches(),
                        String.valueOf(e.getMessage()),
                        connection.command("repair"));
                reader.setAside();
                return;
            }
            settle(); // the previous step is committed before this one is announced
            seconds.put(StepMetric.SECONDS_PREVIOUS_COMMIT.key(), commitSeconds);
            long startVersion = state.newest().getVersion();
            TrainingRecord record =
                    new TrainingRecord(batch, report, seconds, startVersion, incoming.rolloutsConsumed());
            observer.stepCompleted(new CompletedStep(
                    incoming.batch().getBatchId(),
                    report.isStarved() ? startVersion : startVersion + 1,
                    record.numbers()));
            meters.progress();

            long commitStart = System.nanoTime();
            committing = commit(incoming, report, record, startedAtMs);
            commitSeconds = (System.nanoTime() - commitStart) / 1e9;
            reader.trained(incoming);
            meters.version(state.newest().getVersion());
            meters.progress();
        }

        /** Waits until the last step is committed. */
        private void settle() {
            TrainingStep step = committing;
            if (step == null) {
                return;
            }
            long start = System.nanoTime();
            committer.settle();
            commitSeconds += (System.nanoTime() - start) / 1e9;
            committing = null;
            lowerAlarms();
            meters.committed(step);
            meters.progress();
            patience.succeeded();
        }

        private TrainingStep commit(
                IncomingBatch incoming, StepReport report, TrainingRecord record, long startedAtMs) {
            long finishedAtMs = context.clock().millis();
            if (report.isStarved()) {
                TrainingStep step = record.of(state.newest(), startedAtMs, finishedAtMs);
                committer.commitStarved(state.newest(), step, incoming, reader.group());
                report.failure()
                        .ifPresentOrElse(
                                why -> raiseUndecided(step.getBatchId(), why),
                                () -> LOG.info(
                                        "batch {} was starved: no token was left to train on", step.getBatchId()));
                return step;
            }
            VersionCommitter.Committed committed = committer.commit(
                    state.next(incoming, report, finishedAtMs),
                    state.weights(),
                    state.optimizer().state(),
                    manifest -> record.of(manifest, startedAtMs, finishedAtMs),
                    incoming,
                    reader.group());
            alarms.lower(STEP_UNDECIDED, connection.topics().batches());
            state.published(committed.manifest());
            foreign.made(committed.manifest());
            return committed.step();
        }

        private void raiseUndecided(long batchId, String why) {
            alarms.raise(
                    STEP_UNDECIDED,
                    connection.topics().batches(),
                    "batch " + batchId + " is not trained on, at version "
                            + state.newest().getVersion() + ": " + why,
                    "it clears with the next trained batch; if none comes, change that stage's settings"
                            + " under algorithm and restart");
        }

        private void lowerAlarms() {
            String topic = connection.topics().batches();
            alarms.lower(BATCH_LOST, topic);
            alarms.lower(BATCH_UNUSABLE, topic);
        }
    }

    /** Builds the training-log record of a step: batch, effect, duration of each phase. */
    static final class TrainingRecord {
        private final TrainingBatch training;
        private final StepReport report;
        private final Map<String, Double> seconds;
        private final long startVersion;
        private final long rolloutsConsumed;

        /**
         * @param seconds by metric name, each beginning with {@code seconds_}
         * @param startVersion version at step start
         * @param rolloutsConsumed in all batches up to this one, inclusive
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

        /** @param manifest of the version made; of the unchanged version if the batch was starved */
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

        /** Metrics of the step that need no manifest, by name. */
        Map<String, Double> numbers() {
            Map<String, Double> numbers = report.metrics().byName();
            numbers.putAll(seconds);
            numbers.put("reward_mean", training.meanReward());
            numbers.put("rollouts_trained", (double) report.rolloutsTrained());
            numbers.put("tokens_trained", (double) report.tokensTrained());
            numbers.put("learning_rate", report.learningRate());
            report.figures().byName().forEach(numbers::put);
            report.stages().forEach(stage -> StageReports.putInForce(stage, numbers));
            return numbers;
        }

        private Map<String, Double> metrics(PolicyVersion manifest, long startedAtMs) {
            LearnerBatch batch = training.batch();
            Map<String, Double> metrics = report.metrics().byName();
            metrics.putAll(seconds);
            metrics.putAll(report.figures().stalenessQuantiles());
            metrics.put(StepMetric.OPTIMIZER_STEPS.key(), (double) manifest.getOptimizerSteps());
            metrics.put(
                    StepMetric.VERSIONS_BEHIND_ASSEMBLY.key(), (double) (startVersion - batch.getAssembledVersion()));
            training.members().stream()
                    .mapToLong(member -> startedAtMs - member.trajectory().getFinishedAtMs())
                    .average()
                    .ifPresent(ageMs -> metrics.put(StepMetric.LAG_SECONDS.key(), ageMs / 1e3));
            report.stages().forEach(stage -> StageReports.putInForce(stage, metrics));
            batch.getStages().forEach(stage -> StageReports.putOfBatch(stage, metrics));
            return metrics;
        }

        private static @Nullable Double orAbsent(double value) {
            return Double.isNaN(value) ? null : value;
        }
    }

    /**
     * Manifests on {@code policy-versions} that do not extend the run's chain, and the records that repair the topic.
     *
     * <p>Each one goes to the dead letters. Compaction keeps only the last record of a key, so the learner then writes the
     * chain's own manifest of that version again, or a tombstone if the chain has none. A foreign record that is followed
     * by such a record is settled, so that each dead letter is written once over all restarts. Any thread may add offsets;
     * one thread does the rest.
     */
    static final class ForeignManifests {
        private static final String ALARM = "foreign-manifest";

        private final LogConnection connection;
        private final String topic;
        private final Duration limit;
        private final AvroSerde<PolicyVersion> serde;
        private final Set<Long> found = new ConcurrentSkipListSet<>();
        /** Hashes of the weights that this learner has published: before its restart, and since. */
        private final Set<String> earlier;

        private final Set<String> made = new HashSet<>();
        private long counted;

        /**
         * @param earlier hashes of the weights that this learner published before its restart
         * @param longest time to read the topic without progress
         */
        public ForeignManifests(LogConnection connection, Set<String> earlier, Duration limit) {
            this.earlier = Set.copyOf(earlier);
            this.connection = connection;
            this.topic = connection.topics().policyVersions();
            this.limit = limit;
            this.serde = AvroSerde.of(PolicyVersion.class, connection.registry());
        }

        /** Adds the offset of a manifest that does not extend the chain. */
        public void add(long offset) {
            found.add(offset);
        }

        public void made(PolicyVersion manifest) {
            made.add(manifest.getWeights().getSha256());
        }

        /** Returns the hashes of the weights that the learner has published since its restart. */
        public Set<String> made() {
            return Set.copyOf(made);
        }

        /** Whether all added manifests were handled. */
        public boolean isEmpty() {
            return found.isEmpty();
        }

        /**
         * Returns the records to write in one transaction for the manifests added since the last call.
         *
         * @param newest the learner's newest version: keys of later versions get a tombstone
         * @return empty if {@code newest} or another version that the learner published is among them: the log was
         *     truncated, a version's transaction was aborted, or another writer published that version first
         */
        public Optional<List<ProducerRecord<byte[], byte[]>>> answers(PolicyFeed feed, PolicyVersion newest) {
            Set<Long> offsets = new TreeSet<>(found);
            if (offsets.isEmpty()) {
                return Optional.of(List.of());
            }
            List<ConsumerRecord<byte[], byte[]>> records = recordsFrom(Collections.min(offsets));
            Map<VersionKey, Long> settledAt = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                VersionKey.parse(record.key())
                        .filter(key -> !offsets.contains(record.offset()) && belongs(record, key, feed))
                        .ifPresent(key -> settledAt.put(key, record.offset()));
            }
            List<ProducerRecord<byte[], byte[]>> written = new ArrayList<>();
            Map<String, ProducerRecord<byte[], byte[]>> keys = new TreeMap<>();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                Optional<VersionKey> key = VersionKey.parse(record.key());
                if (!offsets.contains(record.offset())
                        || key.isEmpty()
                        || !key.get()
                                .equals(VersionKey.of(
                                        connection.run(), key.get().version()))
                        || settledAt.getOrDefault(key.get(), -1L) > record.offset()) {
                    continue; // another reader refuses what lies under its key, and what is settled was written
                }
                Optional<PolicyVersion> manifest = manifest(record);
                if (manifest.filter(it -> isMade(it, newest)).isPresent()) {
                    return Optional.empty();
                }
                if (manifest.filter(it -> earlier.contains(it.getWeights().getSha256()))
                        .isEmpty()) {
                    report(record, key.get());
                }
                written.add(letter(record, key.get()));
                owner(feed, key.get(), newest.getVersion(), record.partition())
                        .ifPresent(rightful -> keys.put(key.get().toString(), rightful));
            }
            written.addAll(keys.values());
            found.removeAll(offsets);
            return Optional.of(written);
        }

        private boolean isMade(PolicyVersion manifest, PolicyVersion newest) {
            return made.contains(manifest.getWeights().getSha256())
                    || manifest.getVersion() == newest.getVersion() && hasWeights(manifest, newest);
        }

        private static boolean hasWeights(PolicyVersion manifest, PolicyVersion of) {
            return manifest.getWeights().getSha256().equals(of.getWeights().getSha256());
        }

        private Optional<PolicyVersion> manifest(ConsumerRecord<byte[], byte[]> record) {
            try {
                return Optional.ofNullable(serde.deserializer().deserialize(topic, record.value()));
            } catch (MalformedRecordException e) {
                return Optional.empty();
            }
        }

        private void report(ConsumerRecord<byte[], byte[]> record, VersionKey key) {
            counted++;
            connection
                    .alarms()
                    .raise(
                            ALARM,
                            topic,
                            counted
                                    + " records do not extend the run's chain of versions and were skipped, the"
                                    + " last under the key of version " + key.version() + " at offset "
                                    + record.offset()
                                    + "; a process other than the run's learner writes to this topic",
                            "stop that writer; the records are on "
                                    + connection.topics().deadLetters() + ", and no record of the run is lost");
        }

        private ProducerRecord<byte[], byte[]> letter(ConsumerRecord<byte[], byte[]> record, VersionKey key) {
            return DeadLetters.of(
                    record,
                    Refusal.of(
                            RefusalReason.IDENTITY,
                            "version",
                            "the record under the key of version " + key.version()
                                    + " does not extend the run's chain of versions"),
                    connection.run(),
                    connection.topics().deadLetters());
        }

        /** Returns the record that the key must have last. */
        private Optional<ProducerRecord<byte[], byte[]>> owner(
                PolicyFeed feed, VersionKey key, long newest, int partition) {
            if (key.version() > newest) {
                return Optional.of(new ProducerRecord<>(topic, partition, key.bytes(), null));
            }
            try {
                byte[] manifest = serde.serializer().serialize(topic, feed.manifest(key.version()));
                return Optional.of(new ProducerRecord<>(topic, partition, key.bytes(), manifest));
            } catch (VersionUnavailableException e) {
                return Optional.empty(); // older than what is known
            }
        }

        private boolean belongs(ConsumerRecord<byte[], byte[]> record, VersionKey key, PolicyFeed feed) {
            if (record.value() == null) {
                return true;
            }
            try {
                PolicyVersion rightful = feed.manifest(key.version());
                return manifest(record)
                        .filter(found -> hasWeights(found, rightful))
                        .isPresent();
            } catch (VersionUnavailableException e) {
                return false;
            }
        }

        private List<ConsumerRecord<byte[], byte[]>> recordsFrom(long offset) {
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            try (LogReader log = new LogReader(connection.as("foreign-manifests"))) {
                TopicPartition partition = new TopicPartition(
                        topic,
                        PolicyPartition.of(
                                connection.run().policyId(),
                                topic,
                                log.consumer().partitionsFor(topic)));
                log.from(partition, offset);
                Map<TopicPartition, Long> end = Map.of(partition, log.end(partition, limit));
                if (!log.readTo(end, ReadLimit.withoutProgress(limit), records::add)) {
                    throw new IllegalStateException(
                            partition + " could not be read to its end within " + limit.toMillis() + " ms");
                }
            }
            return records;
        }
    }
}
