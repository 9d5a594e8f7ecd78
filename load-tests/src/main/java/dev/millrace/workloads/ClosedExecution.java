package dev.millrace.workloads;

import dev.millrace.generator.environment.Environments;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.metrics.ClientMeters;
import dev.millrace.runtime.metrics.Meters;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.train.StepLog;
import dev.millrace.workloads.closed.ClosedLoop;
import dev.millrace.workloads.closed.ClosedPlan;
import dev.millrace.workloads.closed.ClosedRun;
import dev.millrace.workloads.closed.ClosedStep;
import dev.millrace.workloads.closed.SlowEnvironment;
import dev.millrace.workloads.closed.SlowSteps;
import dev.millrace.workloads.topology.LoadException;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;

/**
 * Runs a point of a closed loop: the roles that {@code train} has, in this process, on topics that are deleted afterwards.
 */
public final class ClosedExecution implements ClosedLoop.Execution<ClosedPoint> {
    private static final Duration STOP_PATIENCE = Duration.ofSeconds(30);
    private static final long LOOK_PERIOD_MS = 20;
    private static final List<String> ROLES = List.of("generator", "scorer", "learner");

    private final Map<String, Object> cluster;
    private final Path scratch;
    private final String prefix;

    /**
     * @param cluster how to reach it
     * @param scratch for state
     * @param prefix of the runs' names, not used before on this cluster
     */
    public ClosedExecution(Map<String, Object> cluster, Path scratch, String prefix) {
        this.cluster = cluster;
        this.scratch = scratch;
        this.prefix = prefix;
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
            try (RunLog log = RunLog.open(
                    client,
                    config.run().topics(),
                    config.topology().join().partnerTopics(config.run().topics()),
                    config.run().identity(),
                    config.sizedTopics(),
                    config.run().schemaRegistryUrl().written(),
                    Optional.empty(),
                    Clock.systemUTC())) {
                try {
                    return onLog(point, config, log.connection(), meters.registry());
                } finally {
                    delete(log.connection());
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
            return ClosedRun.of(point.settings(), point.eta() == 0, plan, steps, idle, processorLoad);
        }
    }

    /** @param condition that ends the waiting; the learner's own end does so too */
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

    /** The steps within the budget; the first is where counting begins. */
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
        for (String role : ROLES) {
            Counter counter = meters.find("millrace." + role + ".idle.seconds").counter();
            if (counter == null) {
                throw new IllegalStateException("the role " + role + " does not say for how long it was idle");
            }
            idle.put(role, counter.count());
        }
        return idle;
    }

    private static void delete(LogConnection connection) throws InterruptedException {
        try (Admin admin = Admin.create(connection.admin())) {
            admin.deleteTopics(admin.listTopics().names().get().stream()
                            .filter(name -> name.startsWith(connection.topics().prefix()))
                            .toList())
                    .all()
                    .get();
        } catch (ExecutionException e) {
            throw new LoadException(
                    "the topics of run " + connection.run().runId() + " could not be deleted: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    Objects.requireNonNullElse(e.getCause(), e));
        }
    }
}
