package dev.millrace.runtime.train;

import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.infra.broker.BrokerException;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.Evaluations;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.transaction.TakenOverException;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.LearnerMemory;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.ModelSizes;
import dev.millrace.runtime.config.PretrainedDefaults;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.evaluation.Evaluator;
import dev.millrace.runtime.metrics.ClientMeters;
import dev.millrace.runtime.metrics.HttpEndpoint;
import dev.millrace.runtime.metrics.Meters;
import dev.millrace.runtime.metrics.RunMeters;
import dev.millrace.runtime.pipeline.EpochEnd;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.runtime.pipeline.RunLookup;
import dev.millrace.runtime.pipeline.StopRequest;
import dev.millrace.runtime.pipeline.TokenizerFiles;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.schemas.run.RunTopics;
import io.micrometer.core.instrument.Counter;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One invocation of training: starts what a run needs in order, watches it, and ends it in order.
 *
 * <p>The calling thread watches; every role has a thread of its own. Roles are stopped upstream first, so that what
 * was begun is finished where that is quick and given up, to be repeated, where it is not.
 */
public final class TrainRun {
    private static final Logger LOG = LoggerFactory.getLogger(TrainRun.class);
    private static final double STEPS_PERIOD_SECONDS = 5;

    private MillraceConfig config;
    private final RunDirectory directory;
    private final StopRequest stop;
    private final @Nullable Path summaryCopy;
    private final Supplier<RunView> views;
    private final PrintWriter out;
    private final PrintWriter err;
    private final AtomicReference<BrokerException> brokerFailure = new AtomicReference<>();
    /** Whether the run's log was there and took us; before that nothing has happened that would be worth keeping. */
    private boolean begun;

    /** What is known of held-out prompts now; the whole of it is read from the log at the end. */
    private Supplier<Evaluations> evaluations = () -> Evaluations.NONE;

    private final long startedAtMs;
    private final ElapsedTime elapsed;

    public TrainRun(
            MillraceConfig config,
            RunDirectory directory,
            StopRequest stop,
            @Nullable Path summaryCopy,
            Supplier<RunView> views,
            long startedAtMs,
            PrintWriter out,
            PrintWriter err) {
        this.config = config;
        this.stop = stop;
        this.startedAtMs = startedAtMs;
        this.elapsed = new ElapsedTime(startedAtMs, System.currentTimeMillis(), System::nanoTime);
        this.directory = directory;
        this.summaryCopy = summaryCopy;
        this.views = views;
        this.out = out;
        this.err = err;
    }

    /** Runs until the goal, a limit, a signal or a failure. */
    public RunResult run() throws Exception {
        say((directory.resumed() ? "going on with run " : "run ") + config.run().id() + " in " + directory.path());
        if (!directory.resumed() && !config.model().checkpoint().isEmpty()) {
            say(PretrainedDefaults.sentence(config));
        }
        LearnerMemory.require(config);
        ModelSizes.sentence(config).ifPresent(this::say);
        LearnerMemory.sentence(config).ifPresent(this::say);
        config.algorithm().whyObjectiveCannotAct().ifPresent(this::say);
        try {
            StartCheck.require(config, directory.resumed());
            if (!directory.resumed()) {
                writeConfiguration(); // before anything else is made, so that a kill leaves a folder that can be gone
                // on with
            }
            return started();
        } catch (Exception e) {
            if (!begun && !directory.resumed()) {
                directory.discard();
            }
            throw e;
        }
    }

    private RunResult started() throws Exception {
        try (Meters meters = new Meters(config.metrics(), config.run().id());
                HttpEndpoint endpoint =
                        HttpEndpoint.openIfWanted(config.metrics().port(), meters.registry())) {
            RunMeters.bind(config, meters.registry());
            if (endpoint.port() >= 0) {
                say("metrics at http://127.0.0.1:" + endpoint.port() + "/metrics");
            }
            if (!config.run().embedded()) {
                say("log on " + config.run().bootstrapServers() + ", topics "
                        + config.run().topics().prefix() + "*");
                return onLog(config.run().bootstrapServers(), topics -> {}, endpoint, meters.registry());
            }
            try (EmbeddedBroker broker =
                    stop.starting(() -> EmbeddedBroker.start(directory.broker(), config.broker()))) {
                broker.failure().thenAccept(brokerFailure::set);
                directory.writeBrokerAddress(broker.bootstrapServers());
                say("broker at " + broker.bootstrapServers() + ", topics "
                        + config.run().topics().prefix() + "*");
                return onLog(broker.bootstrapServers(), broker::keep, endpoint, meters.registry());
            }
        }
    }

    /** @param keeps is told the topics that a published version rests on */
    private RunResult onLog(
            String bootstrapServers,
            Consumer<Collection<String>> keeps,
            HttpEndpoint endpoint,
            PrometheusMeterRegistry meters)
            throws Exception {
        Map<String, Object> client = ClientMeters.reportingTo(meters, config.clientSettings());
        client.put("bootstrap.servers", bootstrapServers);
        try (RunLog log = stop.starting(() -> RunLog.open(
                client,
                config.run().topics(),
                config.topology().join().partnerTopics(config.run().topics()),
                config.run().identity(),
                config.sizedTopics(),
                config.run().schemaRegistryUrl().written(),
                Optional.of(RecordedConfiguration.of(config).text()),
                Clock.systemUTC()))) {
            EpochEnd.requireEpoch(config, log.connection());
            keeps.accept(restingPlaces());
            agree(log);
            int epoch = log.connection().run().epoch();
            if (epoch > 0) {
                say("epoch " + epoch);
            }
            begun = true;
            writeConfiguration(); // only now is it known that the run can go on with it
            config = TokenizerFiles.forRole(config, log.connection(), Duration.ZERO, line -> {});
            keepTokenizer();
            endpoint.serve(log.registryContents());
            return trained(
                    log.connection()
                            .reachedBy("--run-dir " + directory.path())
                            .withPatience(config.run().patience()),
                    meters);
        }
    }

    /** The topics without whose last records a version that was published could not be loaded, proved or learnt again. */
    private List<String> restingPlaces() {
        RunTopics topics = config.run().topics();
        return List.of(
                topics.run(),
                config.topics().schemasTopic(),
                topics.trajectories(),
                topics.batches(),
                topics.policyVersions(),
                topics.weights(),
                topics.optimizerState(),
                topics.trainingLog());
    }

    /** All roles of the run are here, so it may go on under another configuration; whoever comes later must find that one. */
    private void agree(RunLog log) {
        List<String> changes = RunLookup.configuration(log.claim())
                .map(recorded -> recorded.changes(config))
                .orElse(List.of());
        changes.forEach(this::say);
        if (!changes.isEmpty()) {
            log.reconfigure(RecordedConfiguration.of(config).text(), Clock.systemUTC());
        }
    }

    private void writeConfiguration() {
        directory.write(directory.config(), ConfigTree.write(ConfigBinder.unbind(config)));
    }

    /** So that what the run's tokens mean is known wherever its folder is. */
    private void keepTokenizer() {
        if (!directory.resumed()
                && config.task() instanceof TextTask text
                && text.tokenizer() instanceof TokenizerDirectory files) {
            try {
                files.copyTo(directory.tokenizer());
            } catch (IOException e) {
                throw new RefusedRequestException(
                        "cannot copy the tokenizer to " + directory.tokenizer() + ": " + RunDirectory.reason(e), e);
            }
        }
    }

    private void say(String line) {
        out.println(line);
        out.flush();
    }

    private RunResult trained(LogConnection connection, PrometheusMeterRegistry meters) throws Exception {
        EpochEnd epoch = new EpochEnd(connection);
        EndReport report = new EndReport(config, connection, directory, summaryCopy, startedAtMs, elapsed, out, err);
        RunEnd end;
        double rolesStartedAt;
        Map<String, Double> idle;
        try (StepOutputs outputs = StepOutputs.open(config.metrics(), connection, meters);
                Pipeline pipeline = new Pipeline(config, connection, meters, Clock.systemUTC());
                RoleThreads threads = new RoleThreads(ModelSizes.stopLimit(config));
                Admin admin = Admin.create(connection.admin())) {
            StepLog stepLog = new StepLog(connection, outputs::show);
            rolesStartedAt = elapsed.seconds();
            threads.start(pipeline.admission());
            threads.start(
                    config.gateway().enabled()
                            ? pipeline.gateway(url -> say("agents open sessions at " + url + "/v1/sessions"))
                            : pipeline.generator());
            pipeline.scorers().forEach(threads::start);
            threads.start(pipeline.topology(directory.streamsState()));
            Role learner = pipeline.learner();
            threads.start(learner);
            threads.start(new Role("step log", stepLog, stepLog::stop));
            threads.start(epoch.role());
            threads.start(epoch.places());
            threads.start(epoch.clock("train"));
            Optional<Evaluator> evaluator =
                    config.evaluation().isOn() ? Optional.of(pipeline.evaluator()) : Optional.empty();
            evaluator.ifPresent(made -> {
                evaluations = made::evaluations;
                threads.start(new Role("evaluator", () -> evaluating(made::run), true, made::stop));
            });
            RunMonitor monitor = new RunMonitor(
                    config.run().id(),
                    config.goal(),
                    config.learner().maxSteps(),
                    stepLog.steps(),
                    meters,
                    lag(admin, connection),
                    () -> connection.alarms().standing(),
                    stepLog::idleStages,
                    evaluations);
            end = watch(connection, stepLog.steps(), monitor, threads, learner);
            idle = idleFractions(meters, elapsed.seconds() - rolesStartedAt);
            if (stop.isMade()) {
                say("stopping; a second signal ends at once, without the summary");
            }
            pipeline.stopWaiting();
            threads.stop();
            if (threads.failure().isPresent()) {
                report.failed(threads.failure().get(), idle);
                throw epoch.explained(threads.failure().get());
            }
            if (evaluator.isPresent() && end != RunEnd.INTERRUPTED) {
                evaluating(() -> evaluator.get().evaluateLast(stop::isMade));
            }
        }
        return new RunResult(config.run().id(), directory.path(), end, report.ended(end, idle, stop));
    }

    /** That somebody else evaluates is no reason for a run to end. */
    private static void evaluating(Runnable evaluation) {
        try {
            evaluation.run();
        } catch (TakenOverException e) {
            LOG.warn("the versions of this run are evaluated elsewhere from here on: {}", e.getMessage());
        }
    }

    private static ConsumerLag lag(Admin admin, LogConnection connection) {
        Map<String, String> groups = new LinkedHashMap<>();
        for (String role : List.of("generator", "scorer", "topology", "learner")) {
            groups.put(connection.group(role), role);
        }
        return new ConsumerLag(admin, groups);
    }

    private RunEnd watch(
            LogConnection connection, List<StepRow> steps, RunMonitor monitor, RoleThreads threads, Role learner)
            throws Exception {
        RunResults results = new RunResults(directory);
        AlarmFile alarms = new AlarmFile(directory);
        double stepsWrittenAt = elapsed.seconds();
        try (RunView view = views.get()) {
            while (true) {
                double now = elapsed.seconds();
                view.show(monitor.status(now, steps.isEmpty() ? "the first step" : ""));
                if (now - stepsWrittenAt >= STEPS_PERIOD_SECONDS) {
                    results.writeSteps(List.copyOf(steps));
                    results.writeEvaluations(evaluations.get());
                    alarms.update(connection.alarms().standing());
                    stepsWrittenAt = now;
                }
                if (brokerFailure.get() != null) {
                    throw brokerFailure.get(); // without its log a run can neither stop in order nor be added up
                }
                Optional<RunEnd> end = ended(monitor, threads, learner, now);
                if (end.isPresent()) {
                    view.show(monitor.status(
                            now, "the roles to stop")); // steps may yet be added, which the summary counts
                    return end.get();
                }
                stop.await(view.periodMs());
            }
        }
    }

    private Optional<RunEnd> ended(RunMonitor monitor, RoleThreads threads, Role learner, double now) {
        if (stop.isMade() || threads.failure().isPresent()) {
            return Optional.of(RunEnd.INTERRUPTED);
        }
        if (monitor.goalReached()) {
            return Optional.of(RunEnd.GOAL_REACHED);
        }
        if (threads.hasEnded(learner)) {
            return Optional.of(RunEnd.LAST_STEP);
        }
        return config.goal().maxSeconds() > 0 && now >= config.goal().maxSeconds()
                ? Optional.of(RunEnd.TIME_OVER)
                : Optional.empty();
    }

    private static Map<String, Double> idleFractions(PrometheusMeterRegistry meters, double seconds) {
        Map<String, Double> idle = new TreeMap<>();
        for (String role : List.of("generator", "scorer", "learner")) {
            Counter counter = meters.find("millrace." + role + ".idle.seconds").counter();
            idle.put(role, counter == null ? 0 : Math.max(0, Math.min(1, counter.count() / seconds)));
        }
        return idle;
    }
}
