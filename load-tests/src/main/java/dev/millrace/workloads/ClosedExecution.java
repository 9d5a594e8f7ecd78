package dev.millrace.workloads;

import dev.millrace.api.environment.Task;
import dev.millrace.api.step.CompletedStep;
import dev.millrace.api.step.StepObserver;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.corrections.kl.ReferenceConfig;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.generator.staleness.PromptRequests;
import dev.millrace.learner.InitialPolicy;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepReport;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.GivenRollouts;
import dev.millrace.replay.ScoredRollouts;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.metrics.ClientMeters;
import dev.millrace.runtime.metrics.Meters;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.train.StepLog;
import dev.millrace.runtime.train.TrainRun;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.batch.DirectBatches;
import dev.millrace.workloads.closed.ClosedLoop;
import dev.millrace.workloads.closed.ClosedPlan;
import dev.millrace.workloads.closed.ClosedRun;
import dev.millrace.workloads.closed.ClosedRun.ClosedStep;
import dev.millrace.workloads.closed.SlowEnvironment;
import dev.millrace.workloads.topology.Distribution;
import dev.millrace.workloads.topology.LoadException;
import dev.millrace.workloads.topology.SyntheticRun;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;

/** Runs a point of a closed loop: the roles of {@code train} in this process, on topics deleted afterwards. */
public final class ClosedExecution implements ClosedLoop.Execution<ClosedPoint> {
    private static final Duration STOP_PATIENCE = Duration.ofMinutes(5);
    private static final long LOOK_PERIOD_MS = 20;
    private final Map<String, Object> cluster;
    private final Path scratch;
    private final String prefix;
    private final BiConsumer<Collection<String>, String> sync;

    /** @param sync {@link dev.millrace.infra.broker.EmbeddedBroker#sync} of the broker; not called unless versions are to be durable */
    public ClosedExecution(
            Map<String, Object> cluster, Path scratch, String prefix, BiConsumer<Collection<String>, String> sync) {
        this.cluster = cluster;
        this.scratch = scratch;
        this.prefix = prefix;
        this.sync = sync;
    }

    @Override
    public Optional<ClosedRun> plainLoop(ClosedPoint point) {
        if (!PlainLoop.canRun(point.config())) {
            return Optional.empty();
        }
        try (PlainLoop loop =
                new PlainLoop(named(point, "plain"), point.plan(), slowEnvironments(point.plan(), point.config()))) {
            return Optional.of(loop.run(point.settings()));
        }
    }

    private MillraceConfig named(ClosedPoint point, String id) {
        return point.named(id, String.valueOf(cluster.get("bootstrap.servers")));
    }

    private static Environments slowEnvironments(ClosedPlan plan, MillraceConfig config) {
        return config.served()
                .each(environment ->
                        new SlowEnvironment(environment, plan.environmentMs(), plan.seed(), System::nanoTime));
    }

    @Override
    public ClosedRun run(ClosedPoint point, int number) throws Exception {
        MillraceConfig config = named(point, prefix + "-" + number);
        try (Meters meters = new Meters(config.metrics(), config.run().id())) {
            Map<String, Object> client = ClientMeters.reportingTo(meters.registry(), config.clientSettings());
            client.putAll(cluster);
            try (RunLog log = config.open(client, config.sizedTopics(), Optional.empty())) {
                try {
                    return onLog(point, config, TrainRun.synced(log.connection(), config, sync), meters.registry());
                } finally {
                    SyntheticRun.deleteTopics(log.connection());
                }
            }
        }
    }

    private ClosedRun onLog(ClosedPoint point, MillraceConfig config, LogConnection connection, MeterRegistry meters)
            throws Exception {
        ClosedPlan plan = point.plan();
        Environments environments = slowEnvironments(plan, config);
        StepLog stepLog = new StepLog(connection);
        try (SlowSteps slowSteps = new SlowSteps(plan.stepMs(), plan.seed());
                Pipeline pipeline =
                        new Pipeline(config, connection, meters, Clock.systemUTC(), environments, slowSteps);
                RoleThreads threads = new RoleThreads(STOP_PATIENCE);
                ProcessorLoad processors = new ProcessorLoad()) {
            Role learner = pipeline.learner();
            threads.start(pipeline.admission());
            threads.start(pipeline.generator());
            pipeline.scorers().forEach(threads::start);
            threads.start(pipeline.topology(scratch.resolve(config.run().id())));
            threads.start(learner);
            threads.start(new Role("step log", stepLog, stepLog::stop));
            long deadlineNanos = System.nanoTime() + Math.round(plan.limitSeconds() * 1e9);
            await(() -> !stepLog.steps().isEmpty(), threads, learner, deadlineNanos, plan);
            processors.begin();
            long beganNanos = System.nanoTime();
            Map<String, Double> idleBefore = idleSeconds(meters);
            await(
                    () -> plan.isUsedUp(
                            (System.nanoTime() - beganNanos) / 1e9,
                            stepLog.steps().stream()
                                    .skip(1)
                                    .mapToLong(StepRow::tokensTrained)
                                    .sum()),
                    threads,
                    learner,
                    deadlineNanos,
                    plan);
            Map<String, Double> idle = idleSeconds(meters);
            double seconds = (System.nanoTime() - beganNanos) / 1e9;
            idle.replaceAll((role, at) ->
                    Math.max(0, Math.min(1, (at - idleBefore.getOrDefault(role, 0.0)) / seconds)));
            List<ClosedStep> steps = counted(plan, stepLog.steps());
            double processorLoad = processors.load();
            slowSteps.release(); // first: a learner that is told to stop need not wait for a simulated step
            threads.stop();
            requireHealthy(threads);
            if (steps.isEmpty()) {
                throw noStep(point.settings(), plan);
            }
            return ClosedRun.of(
                    point.settings(), point.eta() == 0, plan, steps, new ClosedRun.Use(idle, processorLoad));
        }
    }

    private static void await(
            BooleanSupplier condition, RoleThreads threads, Role learner, long deadlineNanos, ClosedPlan plan)
            throws Exception {
        while (!condition.getAsBoolean()) {
            requireHealthy(threads);
            if (threads.hasEnded(learner)) {
                return; // learner.max_steps
            }
            if (System.nanoTime() > deadlineNanos) {
                throw notUsedUp(plan);
            }
            Thread.sleep(LOOK_PERIOD_MS);
        }
    }

    private static void requireHealthy(RoleThreads threads) {
        threads.failure().ifPresent(failure -> {
            throw new LoadException("a role failed: " + failure.getMessage(), failure);
        });
    }

    static LoadException notUsedUp(ClosedPlan plan) {
        return new LoadException("the run has not used up its budget within closed.limit_seconds "
                + plan.limitSeconds() + "; raise it, or lower closed.tokens " + plan.tokens() + " or closed.seconds "
                + plan.seconds());
    }

    static LoadException noStep(Map<String, String> settings, ClosedPlan plan) {
        return new LoadException("the run " + settings + " made no step after its first within closed.seconds "
                + plan.seconds() + "; raise it");
    }

    /** Steps within the budget, counted from the first. */
    private static List<ClosedStep> counted(ClosedPlan plan, List<StepRow> rows) {
        List<StepRow> steps = List.copyOf(rows);
        List<ClosedStep> counted = new ArrayList<>();
        long tokens = 0;
        for (StepRow row : steps.subList(1, steps.size())) {
            double at = (row.finishedAtMs() - steps.get(0).finishedAtMs()) / 1e3;
            if (plan.seconds() > 0 && at > plan.seconds() || plan.tokens() > 0 && tokens >= plan.tokens()) {
                break;
            }
            tokens += row.tokensTrained();
            counted.add(new ClosedStep(
                    at, row.version(), row.reward(), row.stalenessMean(), row.essRatio(), row.tokensTrained()));
        }
        return counted;
    }

    private static Map<String, Double> idleSeconds(MeterRegistry meters) {
        Map<String, Double> idle = new TreeMap<>();
        for (String role : RunTopics.IDLE_TIMED) {
            Counter counter = meters.find("millrace." + role + ".idle.seconds").counter();
            if (counter == null) {
                throw new IllegalStateException("the role " + role + " does not say for how long it was idle");
            }
            idle.put(role, counter.count());
        }
        return idle;
    }

    /**
     * Samples, scores, corrects and trains in turns, in one thread and without a log, with the roles' own code and
     * settings. Used by one thread.
     */
    private static final class PlainLoop implements AutoCloseable {
        private final MillraceConfig config;
        private final ClosedPlan plan;
        private final Task task;
        private final PromptRequests requests;
        private final RolloutSampler sampler;
        private final ScoringSession scoring;
        private final GivenRollouts trajectories;
        private final DirectBatches batches;
        private final BatchOptimizer optimizer;
        private final SlowSteps slowSteps;
        private final Weights weights;
        private final AdamW adamW;
        private ControlState controls = ControlState.initial();
        private long batchId;
        private long version;

        /** True if the run uses its own engines alone and no other version as reference. */
        static boolean canRun(MillraceConfig config) {
            return !config.engine().isRemote()
                    && config.topology().join().partners().size() == 1
                    && config.algorithm().routingReplay() == RoutingReplay.NONE
                    && config.algorithm()
                            .kl()
                            .against()
                            .filter(ReferenceConfig.Version.class::isInstance)
                            .isEmpty();
        }

        PlainLoop(MillraceConfig config, ClosedPlan plan, Environments environments) {
            this.config = config;
            this.plan = plan;
            this.task = config.task().task();
            this.requests = new PromptRequests(
                    config.run().identity(), task, config.admission().sampling(), false);
            InitialPolicy initial = Pipeline.initialPolicy(config);
            Engine engine = new Engine(Device.parse(config.run().device()), 1);
            this.sampler =
                    new RolloutSampler(engine, initial.shape(), environments, config.generator(), Clock.systemUTC());
            this.scoring = new ScoringSession(
                    engine, initial.shape(), config.learner().step().tokensPerMicrobatch());
            this.trajectories = new GivenRollouts(config.run().identity());
            this.batches = new DirectBatches(config.run().identity(), config.algorithm());
            this.optimizer = new BatchOptimizer(
                    engine, initial.shape(), config.adapter(), config.learner().step(), config.algorithm());
            this.slowSteps = new SlowSteps(plan.stepMs(), plan.seed());
            this.weights = optimizer.trainable(initial.weights());
            this.adamW = optimizer.newOptimizer();
        }

        /** Trains until the budget is used up; the first step does not count. */
        ClosedRun run(Map<String, String> settings) {
            step(System.nanoTime());
            try (ProcessorLoad processors = new ProcessorLoad()) {
                processors.begin();
                List<ClosedStep> steps = new ArrayList<>();
                long tokens = 0;
                for (long begin = System.nanoTime(); !plan.isUsedUp(seconds(begin), tokens); ) {
                    ClosedStep step = step(begin);
                    tokens += step.tokens();
                    if (plan.seconds() == 0 || step.atSeconds() <= plan.seconds()) {
                        steps.add(step);
                    }
                    if (step.atSeconds() > plan.limitSeconds()) {
                        throw ClosedExecution.notUsedUp(plan);
                    }
                }
                if (steps.isEmpty()) {
                    throw ClosedExecution.noStep(settings, plan);
                }
                return ClosedRun.of(settings, true, plan, steps, new ClosedRun.Use(Map.of(), processors.load()));
            }
        }

        private static double seconds(long begin) {
            return (System.nanoTime() - begin) / 1e9;
        }

        private ClosedStep step(long begin) {
            ScoredRollouts scored = ScoredRollouts.of(sampler.sample(prompts(), weights, version), scoring, weights);
            List<Trajectory> made = trajectories.make(scored, version);
            LearnerBatch batch = batches.make(batchId, made, version);
            StepReport report = optimizer.train(TrainingBatch.of(batch, made), version, controls, weights, adamW);
            if (report.failure().isPresent()) {
                throw new LoadException(
                        "the plain loop cannot train: " + report.failure().get());
            }
            controls = report.controls();
            version += report.isStarved() ? 0 : 1;
            slowSteps.stepCompleted(new CompletedStep(batchId, version, Map.of()));
            batchId++;
            return new ClosedStep(
                    seconds(begin),
                    version,
                    scored.meanReward(),
                    report.isStarved() ? Double.NaN : 0,
                    report.figures().essRatio(),
                    report.tokensTrained());
        }

        private List<PromptRequest> prompts() {
            int samples = config.admission().groupSize();
            long groups = config.topology().batch().sequences() / samples;
            long first = batchId * groups;
            return LongStream.range(first, first + groups)
                    .mapToObj(ordinal -> requests.of(
                            "plain-" + ordinal,
                            ordinal,
                            task.prompts().prompt(config.admission().taskSeed(), ordinal),
                            samples,
                            version,
                            0))
                    .toList();
        }

        @Override
        public void close() {
            slowSteps.close();
            optimizer.close();
            scoring.close();
            sampler.close();
        }
    }

    /** Delays every optimizer step by a drawn time, until released. */
    private static final class SlowSteps implements StepObserver, AutoCloseable {
        private final Distribution addedMs;
        private final long seed;
        private final CountDownLatch released = new CountDownLatch(1);

        SlowSteps(Distribution addedMs, long seed) {
            this.addedMs = addedMs;
            this.seed = seed;
        }

        @Override
        public void stepCompleted(CompletedStep step) {
            try {
                released.await(addedMs.draw(new SplittableRandom(seed + step.batchId())), TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        void release() {
            released.countDown();
        }

        @Override
        public void close() {
            release();
        }
    }
}
