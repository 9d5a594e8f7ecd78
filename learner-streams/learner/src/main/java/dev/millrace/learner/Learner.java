package dev.millrace.learner;

import dev.millrace.api.step.MadeStep;
import dev.millrace.api.step.StepObserver;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.learner.batch.BatchReader;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrajectoryFetcher;
import dev.millrace.learner.commit.VersionCommitter;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepReport;
import dev.millrace.learner.versions.VersionRetention;
import dev.millrace.log.LogConnection;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CancellationException;
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
 * <p>Given the same batches, configuration and initial weights, the weights are the same bit for bit on the same kind of
 * machine; {@link dev.millrace.learner.step} says what decides the bits.
 *
 * <p>{@link #run()} may be called once; {@link #stop()} from any thread and at any time. A stop gives up the step under
 * way, which is repeated at the next start; it never leaves half of one.
 */
public final class Learner implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Learner.class);
    private static final Duration WAIT = Duration.ofMillis(500);

    private final LogConnection connection;
    private final LearnerConfig config;
    private final WeightsConfig weightsConfig;
    private final InitialPolicy initial;
    private final LearnerMeters meters;
    private final MeterRegistry registry;
    private final Clock clock;
    private final VersionCommitter.Producers producers;
    private final BatchOptimizer optimizer;
    private final List<Long> kept = new ArrayList<>();
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
        algorithm.whyObjectiveCannotAct().ifPresent(LOG::warn);
        this.optimizer = new BatchOptimizer(engine, initial.shape(), config.step(), algorithm);
    }

    /**
     * Trains until it is stopped or {@code max_steps} are reached.
     *
     * @throws dev.millrace.learner.commit.FencedLearnerException if another learner has taken over
     * @throws dev.millrace.learner.batch.OutOfSequenceException if the batches do not continue the versions
     * @throws dev.millrace.learner.batch.TrajectoryUnavailableException if a trajectory of a batch cannot be had
     * @throws dev.millrace.learner.batch.InconsistentBatchException if a batch contradicts its trajectories
     * @throws dev.millrace.learner.step.NonFiniteStepException if a step would make the weights NaN or infinite
     */
    public void run() {
        try (VersionCommitter committer = new VersionCommitter(connection, weightsConfig, producers)) {
            TrainingState state = new CheckpointRestore(connection, weightsConfig, initial, clock)
                    .find(committer, optimizer.newOptimizer());
            meters.version(state.newest().getVersion());
            keepReference(state);
            try (VersionRetention care =
                            new VersionRetention(connection, weightsConfig, fixedVersions(), registry, clock);
                    BatchReader reader = new BatchReader(connection, state.progress());
                    TrajectoryFetcher trajectories = new TrajectoryFetcher(
                            connection,
                            config.keptTrajectoryBytes(),
                            Duration.ofMillis(config.trajectoryTimeoutMs()))) {
                wakeup = () -> {
                    reader.wakeup();
                    trajectories.wakeup();
                };
                care.start();
                train(state, committer, reader, trajectories);
            }
        } catch (CancellationException e) {
            if (!stopped) {
                throw e;
            }
            LOG.info("stopped within a step; it is repeated at the next start");
        }
    }

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
        optimizer.referenceVersion().ifPresent(fixed::add);
        return fixed;
    }

    private void keepReference(TrainingState state) {
        OptionalLong version = optimizer.referenceVersion();
        if (version.isPresent()) {
            optimizer.useReference(new ReferencePolicy(connection, weightsConfig)
                    .weights(version.getAsLong(), state.newest().getVersion()));
        }
    }

    /**
     * Publishes the initial weights as version 0, if the run has no version yet, and fences whoever trains: what a run
     * needs that another trainer is to go on with.
     */
    public void publishFirst() {
        try (VersionCommitter committer = new VersionCommitter(connection, weightsConfig, producers)) {
            new CheckpointRestore(connection, weightsConfig, initial, clock).find(committer, optimizer.newOptimizer());
        }
    }

    private void train(
            TrainingState state, VersionCommitter committer, BatchReader reader, TrajectoryFetcher trajectories) {
        while (!stopped && !finished(state)) {
            Optional<IncomingBatch> next = await(state, reader);
            if (next.isPresent()) {
                step(state, next.get(), committer, reader, trajectories);
            }
        }
        LOG.info("ends with version {}{}", state.newest().getVersion(), stopped ? "" : ": max_steps are reached");
    }

    private boolean finished(TrainingState state) {
        return config.maxSteps() > 0 && state.newest().getVersion() >= config.maxSteps();
    }

    /** The next batch; empty only if the learner was stopped. */
    private Optional<IncomingBatch> await(TrainingState state, BatchReader reader) {
        long start = System.nanoTime();
        long reported = start;
        long before = start;
        Optional<IncomingBatch> next = Optional.empty();
        while (next.isEmpty() && !stopped) {
            next = reader.poll(WAIT);
            long now = System.nanoTime();
            meters.idle((now - before) / 1e9);
            meters.progress();
            before = now;
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

    private void step(
            TrainingState state,
            IncomingBatch incoming,
            VersionCommitter committer,
            BatchReader reader,
            TrajectoryFetcher trajectories) {
        long startedAtMs = clock.millis();
        Map<String, Double> seconds = new HashMap<>();
        seconds.put("seconds_idle", idleSeconds);
        seconds.put("seconds_previous_commit", commitSeconds);
        state.requireKnown(incoming.batch());
        long fetchStart = System.nanoTime();
        TrainingBatch batch = TrainingBatch.of(incoming.batch(), trajectories.fetch(incoming.batch()));
        seconds.put("seconds_fetch", (System.nanoTime() - fetchStart) / 1e9);
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
            committer.commitStarved(state.newest(), step, incoming, reader.group());
            LOG.info("batch {} was starved: no token was left to train on", step.getBatchId());
        } else {
            VersionCommitter.Committed committed = committer.commit(
                    state.next(incoming, report, finishedAtMs),
                    state.weights(),
                    state.optimizer().state(),
                    manifest -> record.of(manifest, startedAtMs, finishedAtMs),
                    incoming,
                    reader.group());
            state.published(committed.manifest());
            step = committed.step();
        }
        commitSeconds = (System.nanoTime() - commitStart) / 1e9;
        reader.trained(incoming);
        meters.committed(step);
        meters.progress();
    }

    /** Asks {@link #run()} to end soon; returns at once. */
    public void stop() {
        stopped = true;
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
