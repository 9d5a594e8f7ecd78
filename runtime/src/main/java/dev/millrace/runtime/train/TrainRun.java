package dev.millrace.runtime.train;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.infra.broker.BrokerException;
import dev.millrace.infra.broker.Durability;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.Alarm;
import dev.millrace.log.EvaluationLog;
import dev.millrace.log.Evaluations;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.transaction.TakenOverException;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.InferenceException;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.CheckpointModel;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.GoalConfig;
import dev.millrace.runtime.config.LearnerMemory;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.ModelSizes;
import dev.millrace.runtime.config.PretrainedDefaults;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.evaluation.Evaluator;
import dev.millrace.runtime.metrics.BrokerMeters;
import dev.millrace.runtime.metrics.ClientMeters;
import dev.millrace.runtime.metrics.HttpEndpoint;
import dev.millrace.runtime.metrics.Meters;
import dev.millrace.runtime.metrics.Probes;
import dev.millrace.runtime.metrics.RunMeters;
import dev.millrace.runtime.pipeline.AccountRights;
import dev.millrace.runtime.pipeline.EndModels;
import dev.millrace.runtime.pipeline.EpochEnd;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.RoleFailedException;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.runtime.pipeline.RunLookup;
import dev.millrace.runtime.pipeline.StopRequest;
import dev.millrace.runtime.pipeline.TokenizerFiles;
import dev.millrace.runtime.report.RunSummary;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.stages.IdleStages;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/**
 * One training invocation: starts a run's parts in order, watches them, and stops them in order.
 *
 * <p>The calling thread watches; every role has its own thread. Roles are stopped upstream first. Short work in
 * progress is finished; long work is aborted and repeated by the next invocation.
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
    /** Opened when the roles have started. */
    private RunView view = RunView.none();

    private final AtomicReference<BrokerException> brokerFailure = new AtomicReference<>();
    /** True once the run's log has accepted this process; before that there is nothing to keep. */
    private boolean begun;

    /** Evaluations known so far; all are read from the log at the end. */
    private Supplier<Evaluations> evaluations = () -> Evaluations.NONE;

    private final long startedAtMs;
    private final ElapsedTime elapsed;

    /**
     * Outputs for a run's progress.
     *
     * @param summaryCopy second place of the summary; null for none
     * @param views opens the view when the roles have started
     * @param err what could not be done for the run's results
     */
    public record Outputs(@Nullable Path summaryCopy, Supplier<RunView> views, PrintWriter out, PrintWriter err) {}

    public TrainRun(
            MillraceConfig config, RunDirectory directory, StopRequest stop, Outputs outputs, long startedAtMs) {
        this.config = config;
        this.stop = stop;
        this.startedAtMs = startedAtMs;
        this.elapsed = new ElapsedTime(startedAtMs, System.currentTimeMillis(), System::nanoTime);
        this.directory = directory;
        this.summaryCopy = outputs.summaryCopy();
        this.views = outputs.views();
        this.out = outputs.out();
        this.err = outputs.err();
    }

    /** Runs until the goal, a limit, a signal or a failure. */
    public RunResult run() throws Exception {
        say((directory.resumed() ? "continuing run " : "run ") + config.run().id() + " in " + directory.path());
        if (!directory.resumed() && !config.model().checkpoint().isEmpty()) {
            say(PretrainedDefaults.sentence(config));
        }
        Optional<String> gradient = LearnerMemory.require(config);
        ModelSizes.sentence(config).ifPresent(this::say);
        gradient.ifPresent(this::say);
        config.algorithm().doubts().forEach(this::say);
        MDC.put("run", config.run().id());
        try {
            requireStart(config, directory.resumed());
            if (!directory.resumed()) {
                writeConfiguration(); // before anything else is made, so that a kill leaves a folder that can be
                // resumed
            }
            return started();
        } catch (Exception e) {
            if (!begun && !directory.resumed()) {
                directory.discard();
            }
            throw e;
        } finally {
            MDC.remove("run");
        }
    }

    private RunResult started() throws Exception {
        try (Meters meters = new Meters(config.metrics(), config.run().id());
                HttpEndpoint endpoint = HttpEndpoint.openIfWanted(
                        config.http(), config.metrics().port(), meters.registry())) {
            RunMeters.bind(config, meters.registry());
            endpoint.url().ifPresent(url -> say("metrics at " + url + "/metrics"));
            if (!config.run().embedded()) {
                say("log on " + config.run().bootstrapServers() + ", topics "
                        + config.run().topics().prefix() + "*");
                try {
                    return onLog(config.run().bootstrapServers(), (topics, learner) -> {}, endpoint, meters.registry());
                } catch (RuntimeException e) {
                    throw AccountRights.explained(config, AccountRights.roles(config), e);
                }
            }
            try (EmbeddedBroker broker =
                    stop.starting(() -> EmbeddedBroker.start(directory.broker(), config.broker()))) {
                broker.failure().thenAccept(brokerFailure::set);
                BrokerMeters.bind(meters.registry());
                directory.writeBrokerAddress(broker.bootstrapServers());
                say("broker at " + broker.bootstrapServers() + ", topics "
                        + config.run().topics().prefix() + "*");
                return onLog(broker.bootstrapServers(), broker::sync, endpoint, meters.registry());
            }
        }
    }

    private RunResult onLog(
            String bootstrapServers,
            BiConsumer<Collection<String>, String> sync,
            HttpEndpoint endpoint,
            PrometheusMeterRegistry meters)
            throws Exception {
        Map<String, Object> client = ClientMeters.reportingTo(meters, config.clientSettings());
        client.put("bootstrap.servers", bootstrapServers);
        try (RunLog log = stop.starting(() -> config.open(
                client,
                config.sizedTopics(),
                Optional.of(RecordedConfiguration.of(config).text())))) {
            EpochEnd.requireEpoch(config, log.connection());
            agree(log);
            int epoch = log.connection().run().epoch();
            if (epoch > 0) {
                say("epoch " + epoch);
            }
            begun = true;
            writeConfiguration(); // only now is it known that the run can continue with it
            config = TokenizerFiles.forRole(config, log.connection(), Duration.ZERO, line -> {})
                    .withCurves(directory.curves().toString());
            keepTokenizer();
            endpoint.serve(log.registryContents());
            if (!config.run().embedded()) {
                AccountRights.requireNone(
                        config,
                        AccountRights.roles(config).stream()
                                .filter(role -> role != RoleRights.CREATOR)
                                .toList());
            }
            return trained(
                    synced(log.connection(), config, sync)
                            .reachedBy("--run-dir " + directory.path())
                            .withPatience(config.run().patience()),
                    endpoint,
                    meters);
        }
    }

    /**
     * The same log, whose versions a generator takes up when they are on the broker's disk, if {@code broker.durability} is
     * {@code versions}.
     *
     * @param sync {@link EmbeddedBroker#sync} of the run's broker
     */
    public static LogConnection synced(
            LogConnection connection, MillraceConfig config, BiConsumer<Collection<String>, String> sync) {
        if (config.broker().durability() != Durability.VERSIONS) {
            return connection;
        }
        RunTopics topics = config.run().topics();
        List<String> neededByVersion = List.of( // to load, verify or relearn it
                topics.run(),
                config.topics().schemasTopic(),
                topics.trajectories(),
                topics.batches(),
                topics.policyVersions(),
                topics.weights(),
                topics.optimizerState(),
                topics.trainingLog());
        return connection.syncedBy(() -> sync.accept(neededByVersion, connection.scoped("learner")));
    }

    /**
     * All roles of the run are in this process, so its configuration may change; records the new one for later
     * processes.
     */
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

    /** Keeps the run's tokens readable wherever its folder is. */
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

    private RunResult trained(LogConnection connection, HttpEndpoint endpoint, PrometheusMeterRegistry meters)
            throws Exception {
        try {
            return trainedUnderView(connection, endpoint, meters);
        } finally {
            view.close();
        }
    }

    private RunResult trainedUnderView(LogConnection connection, HttpEndpoint endpoint, PrometheusMeterRegistry meters)
            throws Exception {
        EpochEnd epoch = new EpochEnd(connection, stop);
        EndReport report = new EndReport(connection);
        RunEnd end;
        double rolesStartedAt;
        Map<String, Double> idle;
        try (StepOutputs outputs = StepOutputs.open(config.metrics(), connection, meters);
                Pipeline pipeline = new Pipeline(config, connection, meters, Clock.systemUTC());
                RoleThreads threads = new RoleThreads(ModelSizes.stopLimit(config));
                Admin admin = Admin.create(connection.as("lag").admin())) {
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
            endpoint.answer(new Probes(
                    connection.alarms().pulses(),
                    ModelSizes.turnLimit(config),
                    () -> threads.failure().isPresent()));
            RunMonitor monitor = new RunMonitor(
                    config,
                    stepLog,
                    meters,
                    lag(admin, connection, meters),
                    () -> connection.alarms().active(),
                    evaluations);
            view = views.get();
            end = watch(connection, stepLog.steps(), monitor, threads, learner, new WorkFile(directory, meters));
            view.leave();
            idle = idleFractions(meters, elapsed.seconds() - rolesStartedAt);
            if (stop.isMade()) {
                say("stopping; a second signal exits at once, without the summary");
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
        RunSummary summary = report.ended(end, idle, stop);
        view.end(end.reason(), summary.steps().size());
        return new RunResult(config.run().id(), directory.path(), end, summary);
    }

    /** Another evaluator does not end the run. */
    private static void evaluating(Runnable evaluation) {
        try {
            evaluation.run();
        } catch (TakenOverException e) {
            LOG.warn("another process evaluates the versions of this run from now on: {}", e.getMessage());
        }
    }

    private static ConsumerLag lag(Admin admin, LogConnection connection, MeterRegistry meters) {
        Map<String, String> groups = new LinkedHashMap<>();
        for (String role : RunTopics.CONSUMERS) {
            groups.put(connection.group(role), role);
        }
        return new ConsumerLag(admin, groups, meters);
    }

    private RunEnd watch(
            LogConnection connection,
            List<StepRow> steps,
            RunMonitor monitor,
            RoleThreads threads,
            Role learner,
            WorkFile work)
            throws Exception {
        RunResults results = new RunResults(directory);
        AlarmFile alarms = new AlarmFile(directory);
        double stepsWrittenAt = elapsed.seconds();
        while (true) {
            double now = elapsed.seconds();
            view.show(monitor.status(now, steps.isEmpty() ? "the first step" : ""));
            if (now - stepsWrittenAt >= STEPS_PERIOD_SECONDS) {
                results.writeSteps(List.copyOf(steps));
                results.writeEvaluations(evaluations.get());
                alarms.update(connection.alarms().active());
                work.update(newSteps(steps));
                stepsWrittenAt = now;
            }
            if (brokerFailure.get() != null) {
                throw brokerFailure.get(); // without its log a run can neither stop in order nor be summarized
            }
            Optional<RunEnd> end = ended(monitor, threads, learner, now);
            if (end.isPresent()) {
                work.update(newSteps(steps));
                view.show(monitor.status(now, "the roles to stop")); // the summary counts steps that are still added
                return end.get();
            }
            stop.await(view.periodMs());
        }
    }

    private long newSteps(List<StepRow> steps) {
        return List.copyOf(steps).stream()
                .filter(step -> step.finishedAtMs() >= startedAtMs)
                .count();
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
        for (String role : RunTopics.IDLE_TIMED) {
            Counter counter = meters.find("millrace." + role + ".idle.seconds").counter();
            idle.put(role, counter == null ? 0 : Math.max(0, Math.min(1, counter.count() / seconds)));
        }
        return idle;
    }

    /** Reads the results of a finished run from the log, writes them into its folder, and prints them. */
    private final class EndReport {
        private static final Duration LEDGER_PATIENCE = Duration.ofSeconds(30);

        private final LogConnection connection;

        EndReport(LogConnection connection) {
            this.connection = connection;
        }

        /**
         * Reports a run that ended well.
         *
         * @param idle what part of the time each role had nothing to do
         * @param stop once it is made, models are no longer written
         */
        RunSummary ended(RunEnd end, Map<String, Double> idle, StopRequest stop) {
            RunSummary summary = summary(idle, end.reason(), end == RunEnd.GOAL_REACHED);
            if (config.goal().exportModels()) {
                exportModels(summary, stop);
            }
            if (summary.invocation().newSteps() == 0 && end != RunEnd.INTERRUPTED && end != RunEnd.TIME_OVER) {
                say("nothing left to do: "
                        + (end == RunEnd.LAST_STEP
                                ? "learner.max_steps is " + config.learner().maxSteps()
                                        + "; continue with a larger --max-steps"
                                : "goal.mean_reward is " + config.goal().meanReward()
                                        + "; --set goal.mean_reward=... with a larger one continues"));
            }
            return summary;
        }

        /** Reports a failed run as far as possible; a failure to report must not hide the cause. */
        void failed(RoleFailedException failure, Map<String, Double> idle) {
            try {
                summary(idle, "a role failed", false);
            } catch (RuntimeException e) {
                failure.addSuppressed(e);
                err.println("there is no summary: " + e.getMessage());
            }
        }

        /** The run has already ended well; a failure to write a model does not change that. */
        private void exportModels(RunSummary summary, StopRequest stop) {
            EndModels models = new EndModels(connection, config, directory.models());
            Map<String, Long> versions = new LinkedHashMap<>();
            versions.put("last", summary.policyVersion());
            versions.put("best", summary.bestVersion());
            versions.forEach((name, version) -> {
                String later = "; millrace model export --run-dir " + directory.path() + " --version " + version
                        + " --to DIR writes it";
                if (stop.isMade()) {
                    say("  the " + name + " model is not written, since the run was stopped" + later);
                    return;
                }
                try {
                    say("  " + models.write(name, version));
                } catch (RefusedRequestException e) {
                    err.println("the " + name + " model is not written: " + e.getMessage() + later);
                    err.flush();
                }
            });
        }

        private RunSummary summary(Map<String, Double> idle, String stoppedBecause, boolean goalReached) {
            Account account = new LedgerReader(connection).read(LEDGER_PATIENCE);
            List<StepRow> steps = account.steps().stream().map(StepRow::new).toList();
            IdleStages stages = new IdleStages(IdleStages.STEPS);
            account.steps().forEach(stages::add);
            double[] secondsOfNew = steps.stream()
                    .filter(step -> step.finishedAtMs() >= startedAtMs)
                    .mapToDouble(step -> (step.finishedAtMs() - startedAtMs) / 1e3)
                    .toArray();
            RunSummary summary = new RunSummary(
                    config.run().id(),
                    steps,
                    stages.idle(),
                    new RunSummary.Tokens(account.generatedTokens(), account.scoredTokens(), account.trainedTokens()),
                    account.balance(),
                    EvaluationLog.read(connection, LEDGER_PATIENCE),
                    new RunSummary.Invocation(
                            secondsOfNew.length,
                            secondsOfNew.length == 0 ? Double.NaN : secondsOfNew[0],
                            elapsed.seconds(),
                            idle,
                            connection.alarms().active(),
                            goalReached,
                            stoppedBecause));
            RunResults results = new RunResults(directory);
            results.write(summary, err);
            out.println("the run stopped because " + stoppedBecause);
            RunResults.print(summary, out);
            say("  results are in " + directory.path() + ": config.yaml, summary.json, steps.csv"
                    + (Files.exists(directory.picture()) ? ", run.png" : ""));
            if (!goalReached && config.learner().maxSteps() != summary.steps().size()) {
                say("  millrace train --run-dir " + directory.path() + " continues from here");
            }
            if (summaryCopy != null) {
                results.writeCopy(summary, summaryCopy);
            }
            return summary;
        }
    }

    /** Collects a run's steps, meters and lag into a status. Used by one thread. */
    static final class RunMonitor {
        private static final Logger LOG = LoggerFactory.getLogger(RunMonitor.class);
        private static final double LAG_PERIOD_SECONDS = 1.5;

        private final String runId;
        private final GoalConfig goal;
        private final long maxSteps;
        private final List<StepRow> steps;
        private final Rates rates;
        private final ConsumerLag consumerLag;
        private final Supplier<List<Alarm>> alarms;
        private final Supplier<List<IdleStages.Idle>> idleStages;
        private final Supplier<Evaluations> evaluations;
        private Map<String, Long> lag = Map.of();
        private boolean clusterSilent;
        private double lagReadAt = Double.NEGATIVE_INFINITY;

        RunMonitor(
                MillraceConfig config,
                StepLog stepLog,
                MeterRegistry meters,
                ConsumerLag consumerLag,
                Supplier<List<Alarm>> alarms,
                Supplier<Evaluations> evaluations) {
            this.evaluations = evaluations;
            this.idleStages = stepLog::idleStages;
            this.runId = config.run().id();
            this.goal = config.goal();
            this.maxSteps = config.learner().maxSteps();
            this.steps = stepLog.steps();
            this.rates = new Rates(meters);
            this.consumerLag = consumerLag;
            this.alarms = alarms;
        }

        /** Mean reward over the goal's window; NaN while there are fewer steps than that. */
        double windowMean() {
            return steps.size() < goal.overSteps() ? Double.NaN : meanOfLast(goal.overSteps());
        }

        boolean goalReached() {
            return goal.meanReward() > 0 && windowMean() >= goal.meanReward();
        }

        private double meanOfLast(int count) {
            List<StepRow> all = List.copyOf(steps);
            return all.subList(Math.max(0, all.size() - count), all.size()).stream()
                    .mapToDouble(StepRow::reward)
                    .average()
                    .orElse(Double.NaN);
        }

        RunStatus status(double elapsedSeconds, String phase) throws InterruptedException {
            rates.sample(elapsedSeconds);
            if (elapsedSeconds - lagReadAt >= LAG_PERIOD_SECONDS && phase.isEmpty()) {
                lagReadAt = elapsedSeconds;
                readLag();
            }
            String awaited = clusterSilent ? "the cluster to answer" : phase;
            List<StepRow> all = List.copyOf(steps);
            StepRow last = all.isEmpty() ? null : all.get(all.size() - 1);
            double mean = meanOfLast(goal.overSteps());
            double first = all.isEmpty() ? Double.NaN : all.get(0).reward();
            double progress = goal.meanReward() <= 0 || Double.isNaN(mean)
                    ? 0
                    : goal.meanReward() <= first ? 1 : (mean - first) / (goal.meanReward() - first);
            return new RunStatus(
                    runId,
                    elapsedSeconds,
                    awaited,
                    new RunStatus.Goal(
                            goal.meanReward() > 0 ? goal.meanReward() : Double.NaN,
                            Math.max(0, Math.min(1, progress)),
                            mean),
                    new RunStatus.Learning(
                            all.size(),
                            maxSteps,
                            last == null ? 0 : last.version(),
                            all.stream().map(StepRow::reward).toList(),
                            last,
                            starvedInARow(all),
                            evaluations.get()),
                    new RunStatus.Roles(rates.tokensPerSecond(), rates.idle(), lag, rates.serving()),
                    new RunStatus.Troubles(
                            idleStages.get().stream()
                                    .map(IdleStages.Idle::sentence)
                                    .toList(),
                            rates.unserved(),
                            alarms.get(),
                            rates.lost()));
        }

        private static long starvedInARow(List<StepRow> steps) {
            int unstarved = steps.size();
            while (unstarved > 0 && steps.get(unstarved - 1).starved()) {
                unstarved--;
            }
            return (long) steps.size() - unstarved;
        }

        private void readLag() throws InterruptedException {
            try {
                lag = consumerLag.read();
                clusterSilent = false;
            } catch (ExecutionException | TimeoutException e) {
                LOG.warn("the lag cannot be read: {}", e.toString());
                lag = Map.of(); // shown as unknown, not as the last value
                clusterSilent = true;
            }
        }
    }

    /**
     * Checks what a run needs before anything starts.
     *
     * @param resumed whether the run continues, and has its first weights on the log
     * @throws ConfigException if a key has an impossible value
     * @throws RefusedRequestException if this machine lacks something
     */
    private static void requireStart(MillraceConfig config, boolean resumed) {
        try {
            new Engine(Device.parse(config.run().device()), 1).requireUsable();
        } catch (IllegalArgumentException e) {
            throw new ConfigException("run.device: " + e.getMessage(), e);
        } catch (InferenceException e) {
            throw new RefusedRequestException(
                    "run.device " + config.run().device() + " cannot be used: " + e.getMessage()
                            + "; fix that, or choose --device cpu",
                    e);
        }
        config.requireData();
        if (!(config.task() instanceof TextTask text)
                || !(text.tokenizer() instanceof TokenizerDirectory folder)
                || text.files().contents().isEmpty()
                || TokenizerFiles.isHere(folder)) {
            config.requireTokenizer(); // otherwise the log has it
        }
        config.requireHeldOutFiles();
        RunLog.requireRegistry(config.topics(), config.run().schemaRegistryUrl().written());
        if (!resumed && !config.model().checkpoint().isEmpty()) {
            new CheckpointModel(config.model()).check();
        }
    }
}
