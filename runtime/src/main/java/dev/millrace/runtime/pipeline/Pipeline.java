package dev.millrace.runtime.pipeline;

import dev.millrace.api.environment.Task;
import dev.millrace.api.step.StepObserver;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.gateway.Gateway;
import dev.millrace.gateway.engine.RemoteEngines;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.sampling.Generator;
import dev.millrace.generator.sampling.RoleContext;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.generator.sampling.TurnGenerator;
import dev.millrace.generator.staleness.StalenessController;
import dev.millrace.learner.InitialPolicy;
import dev.millrace.learner.Learner;
import dev.millrace.learner.LearnerContext;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.LostOffsets;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.runtime.config.CheckpointModel;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.LearnerMemory;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.evaluation.Evaluator;
import dev.millrace.scorer.Scorer;
import dev.millrace.scorer.ScorerPurpose;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Creates the roles of a run from its configuration.
 *
 * <p>Each role gets its own engine and, where it reads versions, its own feed, so that it works the same in a shared
 * process. {@link #close} closes everything created here in reverse order, after the roles have ended.
 */
public final class Pipeline implements AutoCloseable {
    private final MillraceConfig config;
    private final LogConnection connection;
    private final MeterRegistry meters;
    private final Clock clock;
    private final Task task;
    private final Environments environments;
    private final StepObserver steps;
    private final Deque<AutoCloseable> made = new ArrayDeque<>();

    public Pipeline(MillraceConfig config, LogConnection connection, MeterRegistry meters, Clock clock) {
        this(config, connection, meters, clock, config.served(), step -> {});
    }

    /** @param steps observes the learner's steps, before the configured observers */
    public Pipeline(
            MillraceConfig config,
            LogConnection connection,
            MeterRegistry meters,
            Clock clock,
            Environments environments,
            StepObserver steps) {
        this.config = config;
        this.environments = environments;
        this.steps = steps;
        this.connection = connection;
        this.meters = meters;
        this.clock = clock;
        this.task = config.task().task();
        // a name that was never raised has no gauge
        connection
                .alarms()
                .onNewName(name -> Gauge.builder("millrace.alarms", connection.alarms(), all -> all.active(name))
                        .tag("name", name)
                        .description("alarms that last")
                        .register(meters));
    }

    private <T extends AutoCloseable> T keep(T closeable) {
        made.push(closeable);
        return closeable;
    }

    /** @throws ConfigException if another trainer's recorder writes the run */
    private LogConnection as(String role) {
        if (config.run().recorded()) {
            throw new ConfigException(
                    "cannot start " + role + ": run.recorded is true, so only another trainer's recorder writes"
                            + " to run " + config.run().id()
                            + "; read it with ledger, trace, doctor or replay --corrections, or give this role its own run");
        }
        return connection.as(role);
    }

    private PolicyFeed feed(LogConnection of) {
        return keep(new PolicyFeed(of, config.weights()));
    }

    private RoleContext context(LogConnection of) {
        return new RoleContext(of, feed(of), meters, clock);
    }

    private Engine engine() {
        return new Engine(Device.parse(config.run().device()), 1);
    }

    public Role admission() {
        config.requireData();
        config.requireTokenizer();
        LogConnection own = as("admission");
        StalenessController admission = keep(
                new StalenessController(own, feed(own), task, config.admission(), recordsRouting(), meters, clock));
        return new Role("admission", admission::run, admission::stop);
    }

    private boolean recordsRouting() {
        return config.algorithm().routingReplay() == RoutingReplay.GENERATOR;
    }

    /**
     * Samples.
     *
     * @throws dev.millrace.log.run.LogSetupException if its group has lost its offsets
     */
    public Role generator() {
        LogConnection own = as("generator");
        LostOffsets.requireNone(own, "generator");
        config.requirePartners();
        config.requireTokenizer();
        if (config.engine().isRemote()) {
            TurnGenerator other = keep(new TurnGenerator(
                    context(own), environments, task.tokenizer().stopTokens(), remoteEngine(), config.generator()));
            return new Role("generator", other::run, other::stop);
        }
        Generator generator = keep(new Generator(context(own), environments, engine(), config.generator()));
        return new Role("generator", generator::run, generator::stop);
    }

    private TurnEngine.Factory remoteEngine() {
        try {
            return RemoteEngines.factory(
                    config.engine(),
                    config.generator(),
                    connection.run(),
                    config.model().checkpoint(),
                    engine(),
                    meters,
                    clock);
        } catch (IllegalArgumentException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
    }

    /**
     * Serves agents through the gateway.
     *
     * @param listening is told where
     */
    public Role gateway(Consumer<String> listening) {
        config.requirePartners();
        config.requireTokenizer();
        if (config.engine().isRemote()) {
            return gatewayOf(listening, remoteEngine());
        }
        LogConnection own = as("gateway");
        return gateway(
                listening,
                () -> new Gateway(
                        context(own),
                        environments,
                        task.tokenizer(),
                        engine(),
                        config.generator(),
                        config.gateway(),
                        config.http().tls()));
    }

    /**
     * Serves agents with an external engine.
     *
     * @param listening is told where
     * @param other answers in the policy's place; closed with the role
     */
    public Role gateway(Consumer<String> listening, TurnEngine other) {
        return gatewayOf(listening, (weights, shape) -> other);
    }

    private Role gatewayOf(Consumer<String> listening, TurnEngine.Factory factory) {
        LogConnection own = as("gateway");
        return gateway(
                listening,
                () -> new Gateway(
                        context(own),
                        environments,
                        task.tokenizer(),
                        factory,
                        config.generator(),
                        config.gateway(),
                        config.http().tls()));
    }

    private Role gateway(Consumer<String> listening, Supplier<Gateway> made) {
        if (recordsRouting()) {
            throw new ConfigException(
                    "algorithm.routing_replay is generator, and the gateway records no routing; choose none or"
                            + " learner for the run, or use a generator");
        }
        LostOffsets.requireNone(connection, "generator"); // whose group it is in
        Gateway gateway;
        try {
            gateway = keep(made.get());
        } catch (IllegalArgumentException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
        gateway.whenListening(listening);
        return new Role("gateway", gateway::run, gateway::stop);
    }

    /**
     * Recomputes log-probs.
     *
     * @throws ConfigException if the run's topology joins no scores of this purpose, so that it has no topic for them
     * @throws dev.millrace.log.run.LogSetupException if its group has lost its offsets
     */
    public Role scorer(ScorerPurpose purpose) {
        requireJoined(purpose);
        LogConnection own = as(purpose.role());
        LostOffsets.requireNone(own, purpose.role());
        Scorer scorer = keep(new Scorer(own, purpose, feed(own), engine(), config.scorer(), meters, clock));
        return new Role(purpose.role(), scorer::run, scorer::stop);
    }

    private void requireJoined(ScorerPurpose purpose) {
        String topic = purpose.topic(connection.topics());
        if (connection.topics().ofPartners().contains(topic)
                && !config.topology().join().partnerTopics(connection.topics()).contains(topic)) {
            String key = "topology.join." + purpose.role();
            throw new ConfigException("a run without " + key + "=true has no topic " + topic + ", so the scores"
                    + " would never be read; set it for the whole run, or start no " + purpose.role() + " scorer");
        }
    }

    /** A scorer for everything that rollouts are joined with. */
    public List<Role> scorers() {
        List<Role> scorers = new ArrayList<>(List.of(scorer(ScorerPurpose.LEARNER)));
        if (config.scorer().reference().isGiven()) {
            scorers.add(scorer(ScorerPurpose.REFERENCE));
        }
        if (config.scorer().teacher().isGiven()) {
            scorers.add(scorer(ScorerPurpose.TEACHER));
        }
        return scorers;
    }

    /**
     * Joins, corrects, makes batches.
     *
     * @throws dev.millrace.log.run.LogSetupException if its group has lost its offsets
     */
    public Role topology(Path stateDirectory) {
        LogConnection own = as("topology");
        LostOffsets.requireNone(own, "topology");
        TopologyRunner topology =
                keep(new TopologyRunner(config.topology(), config.algorithm(), own, stateDirectory, meters));
        return new Role("topology", topology::run, topology::stop);
    }

    public Role learner() {
        Learner learner = newLearner();
        return new Role("learner", learner::run, config.learner().maxSteps() > 0, learner::stop);
    }

    /** Evaluates versions on held-out prompts. */
    public Evaluator evaluator() {
        config.requirePartners();
        config.requireTokenizer();
        config.requireHeldOutFiles();
        LogConnection own = as("evaluator");
        return keep(new Evaluator(config, own, feed(own), engine(), meters, clock));
    }

    public Role evaluation() {
        if (!config.evaluation().isOn()) {
            throw new ConfigException(
                    "evaluation.every_versions and evaluation.every_seconds are 0, so no evaluation would run; set"
                            + " one of them for this role: --set evaluation.every_versions=10");
        }
        Evaluator evaluator = evaluator();
        return new Role("evaluator", evaluator::run, evaluator::stop);
    }

    /** Publishes the initial weights, if the run has no version yet, and ends; a recorded run has none. */
    public Role firstVersion() {
        if (config.run().recorded()) {
            return new Role("learner", () -> {}, true, () -> {});
        }
        Learner learner = newLearner();
        return new Role("learner", learner::publishFirst, true, learner::stop);
    }

    /** What a run of this configuration begins with. */
    public static InitialPolicy initialPolicy(MillraceConfig config) {
        Tokenizer tokenizer = config.task().task().tokenizer();
        DecoderShape shape = config.shape();
        long seed = config.run().seed();
        return config.model().checkpoint().isEmpty()
                ? InitialPolicy.random(shape, tokenizer.hash(), seed)
                : new InitialPolicy(
                        shape,
                        tokenizer.hash(),
                        seed,
                        () -> CheckpointModel.of(config).weights());
    }

    private Learner newLearner() {
        LearnerMemory.require(config);
        Learner learner = keep(new Learner(
                new LearnerContext(
                        as("learner"), config.learner(), config.weights(), initialPolicy(config), meters, clock),
                config.algorithm(),
                engine()));
        learner.observe(step -> {
            steps.stepCompleted(step);
            config.observers().forEach(observer -> observer.stepCompleted(step));
        });
        if (config.evaluation().isOn() && !config.model().checkpoint().isEmpty()) {
            learner.keepVersion(0); // reference for the policy's text
        }
        for (ScorerPurpose purpose : List.of(ScorerPurpose.REFERENCE, ScorerPurpose.TEACHER)) {
            if (config.scorer().fixed(purpose).version() >= 0) {
                learner.keepVersion(config.scorer().fixed(purpose).version());
            }
        }
        return learner;
    }

    /** Ends waits for an unreachable schema registry; call it before the roles are stopped. */
    public void stopWaiting() {
        connection.stopWaiting();
    }

    @Override
    public void close() {
        while (!made.isEmpty()) {
            try {
                made.pop().close();
            } catch (Exception e) {
                throw new IllegalStateException("a role could not be closed", e);
            }
        }
    }
}
