package dev.millrace.learner;

import dev.millrace.api.step.StepObserver;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.learner.batch.BatchReader;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.learner.batch.TrajectoryFetcher;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.LoraStart;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Patience;
import dev.millrace.log.run.TrueCause;
import dev.millrace.log.transaction.Incarnation;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
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

    private final LogConnection connection;
    private final LearnerConfig config;
    private final WeightsConfig weightsConfig;
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
    private final StopSignal stop = new StopSignal();
    private final Restoration restoration;
    private final ChainWatch chain;
    private final BatchWait wait;
    private final StepMaker steps;

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
        this.restoration = new Restoration(connection, config, weightsConfig, initial, optimizer, meters, stop, clock);
        this.chain = new ChainWatch(connection, weightsConfig);
        this.wait = new BatchWait(connection, config.idleReportMs(), chain, meters, stop);
        this.steps = new StepMaker(optimizer, wait, meters, clock);
    }

    /**
     * Trains until it is stopped or {@code max_steps} are reached. Where the log has lost what comes next, an alarm says so, and
     * it waits.
     *
     * @throws dev.millrace.log.transaction.TakenOverException if another learner has taken over
     * @throws dev.millrace.log.PatienceOverException if the log was away for too long
     * @throws dev.millrace.learner.step.NonFiniteStepException if a step would make the weights NaN or infinite
     */
    public void run() {
        try {
            boolean isOver = false;
            while (!isOver && !stop.isStopped()) {
                isOver = attempt();
            }
        } catch (CancellationException e) {
            if (!stop.isStopped()) {
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
            return !patience.again(e, stop::isStopped);
        }
    }

    /** From the newest version on; false if it must begin again. */
    private boolean life() {
        ForeignManifests foreign = new ForeignManifests(connection, madeBefore, readLimit());
        try (VersionCommitter committer = new VersionCommitter(connection, weightsConfig, incarnation, producers);
                PolicyFeed feed = new PolicyFeed(connection, weightsConfig, foreign::add)) {
            Optional<TrainingState> restored = restoration.restored(feed, committer); // at the newest version
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
                stop.wakes(() -> {
                    reader.wakeup();
                    trajectories.wakeup();
                });
                committer.learntBefore(reader.consumed().learntBefore());
                care.start();
                patience.reopened();
                try {
                    return train(state, new RunningLog(feed, committer, reader, trajectories, foreign));
                } finally {
                    madeBefore.addAll(foreign.made());
                    if (stop.isStopped()) {
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

    /** Keeps a version from being removed, and with it everything after it; before {@link #run()}. */
    public void keepVersion(long version) {
        kept.add(version);
    }

    /** Has somebody told of every step; before {@link #run()}. */
    public void observe(StepObserver newObserver) {
        steps.observe(newObserver);
    }

    private List<Long> fixedVersions() {
        List<Long> fixed = new ArrayList<>(kept);
        optimizer.adapters().ifPresent(put -> fixed.add(0L)); // what they are put upon
        optimizer.referenceVersion().ifPresent(fixed::add);
        return fixed;
    }

    /**
     * Publishes the initial weights as version 0, if the run has no version yet, and fences whoever trains: what a run
     * needs that another trainer is to go on with.
     */
    public void publishFirst() {
        try (VersionCommitter committer = new VersionCommitter(connection, weightsConfig, incarnation, producers);
                PolicyFeed feed = new PolicyFeed(connection, weightsConfig)) {
            restoration.begun(feed, committer);
        }
    }

    /** False if it must be found out again where training stands: the log has gone another way than this learner. */
    private boolean train(TrainingState state, RunningLog log) {
        while (!stop.isStopped() && !finished(state)) {
            Optional<IncomingBatch> next = wait.next(state, log);
            if (next.isPresent()) {
                if (steps.make(state, next.get(), log)) {
                    patience.succeeded();
                }
            } else if (!stop.isStopped()) {
                wait.over();
                return false;
            }
        }
        boolean isOnChain = chain.answerForeign(state, log)
                && (stop.isStopped() || !chain.isMissing(state, log, BatchWait.LOOK_AROUND_NANOS));
        if (!isOnChain && !stop.isStopped()) {
            return false;
        }
        LOG.info(
                "ends with version {}{}",
                state.newest().getVersion(),
                stop.isStopped() ? "" : ": max_steps are reached");
        return true;
    }

    private boolean finished(TrainingState state) {
        return config.maxSteps() > 0 && state.newest().getVersion() >= config.maxSteps();
    }

    /** Asks {@link #run()} to end soon; returns at once. */
    public void stop() {
        stop.stop();
        optimizer.cancel();
    }

    /** Frees the graphs and removes the gauges; after {@link #run()} has returned. */
    @Override
    public void close() {
        optimizer.close();
        meters.removeGauges();
    }
}
