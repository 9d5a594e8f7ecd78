package dev.millrace.learner;

import dev.millrace.api.step.MadeStep;
import dev.millrace.api.step.StepObserver;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.learner.batch.BatchReader;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrajectoryFetcher;
import dev.millrace.learner.batch.TrajectoryUnavailableException;
import dev.millrace.learner.commit.BatchesRetention;
import dev.millrace.learner.commit.VersionCommitter;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.LoraStart;
import dev.millrace.learner.step.StepMetric;
import dev.millrace.learner.step.StepReport;
import dev.millrace.learner.versions.ForeignManifests;
import dev.millrace.learner.versions.VersionRetention;
import dev.millrace.log.LogConnection;
import dev.millrace.log.patience.Patience;
import dev.millrace.log.run.TrueCause;
import dev.millrace.log.transaction.Incarnation;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.VersionSize;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The learner: takes the batches in their order, makes a version of the policy of each, and commits both in one transaction.
 * A batch without a token left is starved: it is consumed, and makes none.
 *
 * <p>Everything that a step leaves behind (chunks of weights and optimiser state, manifest, training-log record, the
 * batch's offset) is written in one Kafka transaction under one transactional id per run. Killed at any moment, a
 * learner that starts again therefore finds a version and the batch after it, and goes on as if nothing had happened: no
 * batch is trained on twice, no version published twice. A second learner fences the first, which then stops.
 *
 * <p>What is next follows from the chain of manifests. A record that is none of the run's ends nothing: it is passed over, and
 * written to the dead letters. Where the log has lost its tail, the learner makes again what is missing out of the batches that
 * are left; where one of these is lost itself, it raises an alarm that names the way out, and waits.
 *
 * <p>Given the same batches, configuration and initial weights, the weights are the same bit for bit on the same kind of
 * machine; {@link dev.millrace.learner.step} says what decides the bits.
 *
 * <p>{@link #run()} may be called once; {@link #stop()} from any thread and at any time. A stop gives up the step under
 * way, which is repeated at the next start; it never leaves half of one.
 */
public final class Learner implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Learner.class);
    private static final Duration WAIT = Duration.ofMillis(500);
    private static final Duration RESTORE_AGAIN = Duration.ofSeconds(10);
    private static final long LOOK_AROUND_NANOS = 2_000_000_000L;
    private static final List<String> LOST_VERSIONS = List.of("version-lost", LearnAgain.DIFFERS, "chain-lost");
    private static final String BATCH_LOST = "batch-lost";
    private static final String BATCH_UNUSABLE = "batch-unusable";
    private static final List<String> BATCH_ALARMS = List.of(BATCH_LOST, BATCH_UNUSABLE);

    private final LogConnection connection;
    private final LearnerConfig config;
    private final WeightsConfig weightsConfig;
    private final InitialPolicy initial;
    private final LearnerMeters meters;
    private final MeterRegistry registry;
    private final Clock clock;
    private final VersionCommitter.Producers producers;
    private final BatchOptimizer optimizer;
    private final Incarnation incarnation = new Incarnation();
    /** Hashes of the weights that were published before the learner began again. */
    private final Set<String> madeBefore = new HashSet<>();

    private final Patience patience;
    private final List<Long> kept = new ArrayList<>();
    private final CountDownLatch stopping = new CountDownLatch(1);
    private volatile boolean stopped;
    /** Ends whatever the running thread waits for. */
    private volatile Runnable wakeup = () -> {};

    private StepObserver observer = step -> {};
    private double idleSeconds;
    private double commitSeconds;

    /**
     * Compiles the graphs; connects to nothing yet.
     *
     * @param algorithm the run's, as the topology has it: by it a step decides at the version it starts from
     * @param initial the policy a fresh run begins with; a run that goes on must be of its shape and vocabulary
     */
    public Learner(
            LogConnection connection,
            LearnerConfig config,
            Algorithm algorithm,
            WeightsConfig weightsConfig,
            InitialPolicy initial,
            Engine engine,
            MeterRegistry registry,
            Clock clock) {
        this(
                connection,
                config,
                algorithm,
                weightsConfig,
                initial,
                engine,
                registry,
                clock,
                VersionCommitter.Producers.kafka());
    }

    Learner(
            LogConnection connection,
            LearnerConfig config,
            Algorithm algorithm,
            WeightsConfig weightsConfig,
            InitialPolicy initial,
            Engine engine,
            MeterRegistry registry,
            Clock clock,
            VersionCommitter.Producers producers) {
        this.connection = connection;
        this.config = config;
        this.weightsConfig = weightsConfig;
        this.initial = initial;
        this.meters = new LearnerMeters(registry);
        this.registry = registry;
        this.clock = clock;
        this.producers = producers;
        this.patience =
                new Patience("learner", connection.patience(), connection.alarms(), () -> TrueCause.of(connection));
        algorithm.whyObjectiveCannotAct().ifPresent(LOG::warn);
        this.optimizer = new BatchOptimizer(
                engine,
                initial.shape(),
                config.lora().shape().map(low -> new LoraStart(low, initial.seed())),
                config.step(),
                algorithm);
    }

    /**
     * Trains until it is stopped or {@code max_steps} are reached. Where the log has lost what comes next, an alarm says so, and
     * it waits.
     *
     * @throws dev.millrace.log.transaction.TakenOverException if another learner has taken over
     * @throws dev.millrace.log.patience.PatienceOverException if the log was away for too long
     * @throws dev.millrace.learner.step.NonFiniteStepException if a step would make the weights NaN or infinite
     */
    public void run() {
        try {
            boolean isOver = false;
            while (!isOver && !stopped) {
                isOver = attempt();
            }
        } catch (CancellationException e) {
            if (!stopped) {
                throw e;
            }
            LOG.info("stopped within a step; it is repeated at the next start");
        }
    }

    /** Where the log takes or gives nothing, it begins again with what is committed. */
    private boolean attempt() {
        try {
            return life();
        } catch (CancellationException e) {
            throw e;
        } catch (RuntimeException e) {
            return !patience.again(e, () -> stopped);
        }
    }

    /** From the newest version on; false if it must begin again. */
    private boolean life() {
        ForeignManifests foreign = new ForeignManifests(connection, madeBefore, readLimit());
        try (VersionCommitter committer = new VersionCommitter(connection, weightsConfig, incarnation, producers);
                PolicyFeed feed = new PolicyFeed(connection, weightsConfig, foreign::add)) {
            Optional<TrainingState> restored = restored(feed, committer); // at the newest version
            if (restored.isEmpty()) {
                return true;
            }
            TrainingState state = restored.get();
            meters.version(state.newest().getVersion());
            try (VersionRetention care =
                            new VersionRetention(connection, weightsConfig, fixedVersions(), registry, clock);
                    BatchReader reader = new BatchReader(connection, state.newest(), readLimit());
                    TrajectoryFetcher trajectories = new TrajectoryFetcher(
                            connection, config.keptTrajectoryBytes(), connection.limit(config.trajectoryTimeoutMs()))) {
                wakeup = () -> {
                    reader.wakeup();
                    trajectories.wakeup();
                };
                committer.learntBefore(reader.consumed().learntBefore());
                care.start();
                patience.reopened();
                try {
                    return train(state, new Log(feed, committer, reader, trajectories, foreign));
                } finally {
                    madeBefore.addAll(foreign.made());
                    if (stopped) {
                        checkpoint(state, committer);
                    }
                }
            }
        }
    }

    /**
     * In the end the newest version gets the optimiser's state, so that whoever goes on needs to learn nothing again, and may do so under other
     * settings. Where that does not succeed, or a step had begun to change the state, it is learnt again from the last checkpoint.
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
                    "the optimiser's state of version {} could not be written; the next start learns again from the last that was",
                    newest.getVersion(),
                    e);
        }
    }

    private Duration readLimit() {
        return connection.limit(weightsConfig.readTimeoutMs());
    }

    /** Where training stands on the log; empty only if the learner was stopped. */
    private Optional<TrainingState> restored(PolicyFeed feed, VersionCommitter committer) {
        CheckpointRestore restore = new CheckpointRestore(connection, weightsConfig, initial, clock);
        String topic = connection.topics().policyVersions();
        while (!stopped) {
            long begun = System.nanoTime();
            try {
                CheckpointRestore.Restored found = restore.find(feed, committer, optimizer);
                TrainingState state = found.state();
                PolicyVersion checkpoint = state.newest();
                keepReference(found.newest());
                new LearnAgain(connection, config, optimizer, meters, readLimit(), () -> stopped)
                        .upTo(found.newest(), state, feed, waiting -> wakeup = waiting);
                if (stopped) {
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
                long again = System.nanoTime() + Math.max(RESTORE_AGAIN.toNanos(), System.nanoTime() - begun);
                do {
                    meters.progress();
                    awaitStop(RESTORE_AGAIN);
                } while (!stopped && (e.alarm().equals(LearnAgain.DIFFERS) || System.nanoTime() < again));
            }
        }
        return Optional.empty();
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

    private void awaitStop(Duration limit) {
        try {
            stopping.await(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            stopped = true;
        }
    }

    /** The log, by what a learner reads and writes it with. */
    private record Log(
            PolicyFeed feed,
            VersionCommitter committer,
            BatchReader reader,
            TrajectoryFetcher trajectories,
            ForeignManifests foreign) {}

    /** Keeps a version from being removed, and with it everything after it; before {@link #run()}. */
    public void keepVersion(long version) {
        kept.add(version);
    }

    /** Has somebody told of every step; before {@link #run()}. */
    public void observe(StepObserver newObserver) {
        observer = newObserver;
    }

    private List<Long> fixedVersions() {
        List<Long> fixed = new ArrayList<>(kept);
        optimizer.adapters().ifPresent(put -> fixed.add(0L)); // what they are put upon
        optimizer.referenceVersion().ifPresent(fixed::add);
        return fixed;
    }

    private void keepReference(PolicyVersion newest) {
        OptionalLong version = optimizer.referenceVersion();
        if (version.isPresent()) {
            optimizer.useReference(
                    new ReferencePolicy(connection, weightsConfig).weights(version.getAsLong(), newest.getVersion()));
        }
    }

    /**
     * Publishes the initial weights as version 0, if the run has no version yet, and fences whoever trains: what a run
     * needs that another trainer is to go on with.
     */
    public void publishFirst() {
        try (VersionCommitter committer = new VersionCommitter(connection, weightsConfig, incarnation, producers);
                PolicyFeed feed = new PolicyFeed(connection, weightsConfig)) {
            new CheckpointRestore(connection, weightsConfig, initial, clock).find(feed, committer, optimizer);
        }
    }

    /** False if it must be found out again where training stands: the log has gone another way than this learner. */
    private boolean train(TrainingState state, Log log) {
        while (!stopped && !finished(state)) {
            Optional<IncomingBatch> next = await(state, log);
            if (next.isPresent()) {
                step(state, next.get(), log);
            } else if (!stopped) {
                lowerBatchAlarms();
                return false;
            }
        }
        boolean isOnChain = answerForeign(state, log) && (stopped || !isMissing(state, log, LOOK_AROUND_NANOS));
        if (!isOnChain && !stopped) {
            return false;
        }
        LOG.info("ends with version {}{}", state.newest().getVersion(), stopped ? "" : ": max_steps are reached");
        return true;
    }

    private boolean finished(TrainingState state) {
        return config.maxSteps() > 0 && state.newest().getVersion() >= config.maxSteps();
    }

    private void lowerBatchAlarms() {
        String topic = connection.topics().batches();
        BATCH_ALARMS.forEach(alarm -> connection.alarms().lower(alarm, topic));
    }

    /** The next batch; empty if the learner was stopped, or must find out again where training stands. */
    private Optional<IncomingBatch> await(TrainingState state, Log log) {
        long start = System.nanoTime();
        long reported = start;
        long before = start;
        Optional<IncomingBatch> next = Optional.empty();
        boolean isOver = false;
        while (next.isEmpty() && !stopped && !isOver) {
            if (!answerForeign(state, log)) {
                return Optional.empty();
            }
            next = log.reader().poll(WAIT);
            long now = System.nanoTime();
            meters.idle((now - before) / 1e9);
            meters.progress();
            isOver = next.isEmpty()
                    && now - start > LOOK_AROUND_NANOS
                    && (isOvertaken(log.reader()) || isMissing(state, log, 0));
            before = now;
            if (next.isEmpty() && now - start > connection.patience().toNanos()) {
                reportMissing(log.reader(), (now - start) / 1_000_000_000);
            }
            if (next.isEmpty() && now - reported > config.idleReportMs() * 1_000_000) {
                LOG.info(
                        "has waited {} s for batch {}; the newest version is {}",
                        (now - start) / 1_000_000_000,
                        log.reader().due(),
                        state.newest().getVersion());
                reported = now;
            }
        }
        idleSeconds = (before - start) / 1e9;
        return next;
    }

    private static boolean isOvertaken(BatchReader reader) {
        boolean isOvertaken = reader.isOvertaken();
        if (isOvertaken) {
            LOG.info("batches from {} on were consumed by somebody else; begins again", reader.due());
        }
        return isOvertaken;
    }

    /**
     * Whether the version that was committed last is not to be had, though nothing failed: somebody has aborted its transaction on the
     * log, of which a producer is not told.
     *
     * @param limitNanos how long it may take to come
     */
    private boolean isMissing(TrainingState state, Log log, long limitNanos) {
        long version = state.newest().getVersion();
        if (log.feed().awaitNewerThan(version - 1, Duration.ofNanos(limitNanos)).isPresent()) {
            return false;
        }
        try (PolicyFeed whole = new PolicyFeed(connection, weightsConfig)) {
            boolean isMissing =
                    whole.newestCommitted().map(PolicyVersion::getVersion).orElse(-1L) < version;
            if (isMissing) {
                LOG.warn(
                        "version {} was committed, and {} does not have it, as where the log has lost its end, or an administrator aborted its transaction;"
                                + " begins again from what there is",
                        version,
                        connection.topics().policyVersions());
            }
            return isMissing;
        }
    }

    private void reportMissing(BatchReader reader, long seconds) {
        if (!reader.ahead().isEmpty() || reader.isDueAgain()) {
            connection
                    .alarms()
                    .raise(
                            BATCH_LOST,
                            connection.topics().batches(),
                            "batch " + reader.due() + " is not on the log and has not come for " + seconds + " s"
                                    + (reader.ahead().isEmpty()
                                            ? "; its version was lost, and is to be learnt again"
                                            : "; batches " + reader.ahead() + " wait for it"),
                            connection.command("repair"));
        }
    }

    /**
     * Manifests that are not of the chain go to the dead letters, and their keys back to whom they belong.
     *
     * @return false if the newest version itself is not of the chain
     */
    private boolean answerForeign(TrainingState state, Log log) {
        if (log.foreign().isEmpty()) {
            return true;
        }
        PolicyVersion newest = state.newest();
        Optional<List<ProducerRecord<byte[], byte[]>>> records = log.foreign().answers(log.feed(), newest);
        if (records.isEmpty()) {
            LOG.warn(
                    "version {}, which this learner made, does not extend the chain that is on {} now; begins again from there",
                    newest.getVersion(),
                    connection.topics().policyVersions());
            return false;
        }
        if (!records.get().isEmpty()) {
            log.committer().commit("what is written because of foreign manifests", records.get());
        }
        return true;
    }

    private void step(TrainingState state, IncomingBatch incoming, Log log) {
        long startedAtMs = clock.millis();
        Map<String, Double> seconds = new HashMap<>();
        seconds.put(StepMetric.SECONDS_IDLE.key(), idleSeconds);
        seconds.put(StepMetric.SECONDS_PREVIOUS_COMMIT.key(), commitSeconds);
        long fetchStart = System.nanoTime();
        TrainingBatch batch;
        try {
            state.requireKnown(incoming.batch());
            batch = TrainingBatch.of(incoming.batch(), log.trajectories().fetch(incoming.batch()));
        } catch (InconsistentBatchException | TrajectoryUnavailableException e) {
            connection
                    .alarms()
                    .raise(
                            BATCH_UNUSABLE,
                            connection.topics().batches(),
                            String.valueOf(e.getMessage()),
                            connection.command("repair"));
            log.reader().setAside();
            return;
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
        long finishedAtMs = clock.millis();
        TrainingStep step;
        if (report.isStarved()) {
            step = record.of(state.newest(), startedAtMs, finishedAtMs);
            log.committer()
                    .commitStarved(state.newest(), step, incoming, log.reader().group());
            LOG.info("batch {} was starved: no token was left to train on", step.getBatchId());
        } else {
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
            step = committed.step();
        }
        commitSeconds = (System.nanoTime() - commitStart) / 1e9;
        log.reader().trained(incoming);
        lowerBatchAlarms();
        patience.succeeded();
        meters.committed(step);
        meters.progress();
    }

    /** Asks {@link #run()} to end soon; returns at once. */
    public void stop() {
        stopped = true;
        stopping.countDown();
        optimizer.cancel();
        wakeup.run();
    }

    /** Frees the graphs and removes the gauges; after {@link #run()} has returned. */
    @Override
    public void close() {
        optimizer.close();
        meters.removeGauges();
    }
}
