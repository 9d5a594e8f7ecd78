package dev.millrace.runtime.pipeline;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.BrokerUnavailableException;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.ModelSizes;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.metrics.ClientMeters;
import dev.millrace.runtime.metrics.HttpEndpoint;
import dev.millrace.runtime.metrics.Meters;
import dev.millrace.runtime.metrics.Probes;
import dev.millrace.runtime.metrics.RunMeters;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.train.Rates;
import dev.millrace.runtime.train.StepFollower;
import dev.millrace.runtime.train.StepOutputs;
import java.io.PrintWriter;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;
import org.slf4j.MDC;

/** Runs one role in its own process, with a progress line now and then. */
public final class SingleRole {
    private static final long LINE_PERIOD_MS = 5_000;

    private static final long LOOK_PERIOD_MS = 500;
    /** As long as roles wait for a first version by default: the creator of the run may not be started yet. */
    private static final Duration CREATION_PATIENCE = Duration.ofSeconds(60);

    /** The role that makes the steps; other roles follow them only to write files. */
    private static final String SHOWS_STEPS = "learner";

    private static final String WAY_OUT =
            "leave the key out, or stop the roles and start one with --reconfigure, which the others then follow";

    private final Function<ObjectNode, ConfigLayers> over;
    private final RoleRights rights;
    private final boolean creates;
    private final boolean reconfigures;
    private final PrintWriter out;
    private final StopRequest stop = new StopRequest();

    /**
     * @param over this process's options, which override the run's recorded configuration
     * @param rights of the role on a cluster with ACLs; missing ones are refused with the command that grants them
     * @param creates whether it creates a missing run, even without options that describe one
     * @param reconfigures whether its options may change the run's configuration
     */
    public SingleRole(
            Function<ObjectNode, ConfigLayers> over,
            RoleRights rights,
            boolean creates,
            boolean reconfigures,
            PrintWriter out) {
        this.over = over;
        this.rights = rights;
        this.creates = creates;
        this.reconfigures = reconfigures;
        this.out = out;
    }

    /** Asks the role to stop; returns at once. Thread-safe, before {@link #run} too. */
    public void stop() {
        stop.make();
    }

    /**
     * Runs until it is stopped or the role ends; throws the role's failure.
     *
     * @return whether the role ended by itself instead of being stopped
     */
    public boolean run(Function<Pipeline, Role> made) throws Exception {
        MillraceConfig config = stop.starting(this::configured);
        MDC.put("run", config.run().id());
        try (Meters meters = new Meters(config.metrics(), config.run().id())) {
            RunMeters.bind(config, meters.registry());
            Map<String, Object> client = ClientMeters.reportingTo(meters.registry(), config.clientSettings());
            client.put("bootstrap.servers", config.run().bootstrapServers());
            return run(made, config, client, meters);
        } catch (RuntimeException e) {
            RuntimeException own = AccountRights.explained(config, List.of(rights), e);
            throw own != e ? own : AccountRights.explained(config, List.of(rights, RoleRights.CREATOR), e);
        } finally {
            MDC.remove("run");
        }
    }

    /** The recorded configuration under this process's options; for a new run the options alone. */
    private MillraceConfig configured() throws InterruptedException {
        ConfigLayers own = over.apply(ConfigTree.empty());
        MillraceConfig whereabouts = own.whereabouts();
        if (whereabouts.run().embedded()) {
            throw new ConfigException(
                    "run.bootstrap_servers is empty; a single role needs a cluster, so give --bootstrap-servers HOST:PORT");
        }
        if (whereabouts.run().id().isEmpty()) {
            throw new ConfigException(
                    "run.id is empty; the roles of a run share its id, so give all of them the same --set run.id=NAME");
        }
        Optional<ClaimedRun> claim = reached(whereabouts, () -> RunLookup.claim(whereabouts));
        if (claim.isEmpty()) {
            boolean begins = creates || own.configuresRun();
            Optional<String> lacking =
                    begins ? reached(whereabouts, () -> AccountRights.toCreate(whereabouts)) : Optional.empty();
            if (!begins || lacking.isPresent()) {
                claim = Optional.of(created(whereabouts, lacking));
            }
        }
        Optional<RecordedConfiguration> recorded = claim.flatMap(RunLookup::configuration);
        if (recorded.isEmpty()) {
            return own.resolve();
        }
        MillraceConfig config = over.apply(recorded.get().tree()).resolve();
        agree(recorded.get(), config);
        return config;
    }

    /** Waits for a broker, and for the topics that another role has to create. */
    private <T> T reached(MillraceConfig config, Supplier<T> contact) throws InterruptedException {
        long deadlineNanos = System.nanoTime() + config.run().patience().toNanos();
        long creationNanos = System.nanoTime() + CREATION_PATIENCE.toNanos();
        boolean isSaid = false;
        boolean awaitsCreator = false;
        while (true) {
            try {
                return contact.get();
            } catch (BrokerUnavailableException e) {
                if (stop.isMade() || System.nanoTime() - deadlineNanos > 0) {
                    throw e;
                }
                if (!isSaid) {
                    say("no broker answers at " + config.run().bootstrapServers() + "; waiting for one, up to "
                            + config.run().patience().toSeconds() + " s (run.patience_seconds)");
                }
                isSaid = true;
            } catch (LogSetupException e) {
                if (!AccountRights.isCauseOf(e)) {
                    throw e;
                }
                if (!awaitsCreator) {
                    RuntimeException own = AccountRights.explained(config, List.of(rights), e);
                    if (own != e) {
                        throw own;
                    }
                    say("run " + config.run().id()
                            + " is only partly created; waiting for the role that creates it, up to "
                            + CREATION_PATIENCE.toSeconds() + " s");
                }
                awaitsCreator = true;
                if (System.nanoTime() - creationNanos > 0) {
                    throw new LogSetupException("run " + config.run().id() + " was not completely created within "
                            + CREATION_PATIENCE.toSeconds() + " s, and this role may not create it: "
                            + AccountRights.explained(config, List.of(RoleRights.CREATOR), e)
                                    .getMessage());
                }
                if (stop.await(LOOK_PERIOD_MS)) {
                    throw new StoppedException(e);
                }
            }
        }
    }

    private void agree(RecordedConfiguration recorded, MillraceConfig config) {
        if (reconfigures) {
            recorded.changes(config).forEach(this::say);
        } else {
            recorded.require(config, WAY_OUT);
        }
    }

    private ClaimedRun created(MillraceConfig whereabouts, Optional<String> lacking) throws InterruptedException {
        say(
                lacking.isEmpty()
                        ? "waiting for run " + whereabouts.run().id() + " to be created"
                        : "this account may not create run " + whereabouts.run().id()
                                + "; waiting for a role that may, up to " + CREATION_PATIENCE.toSeconds() + " s");
        long deadlineNanos = System.nanoTime() + CREATION_PATIENCE.toNanos();
        while (System.nanoTime() < deadlineNanos) {
            if (stop.await(LOOK_PERIOD_MS)) {
                throw new StoppedException(null);
            }
            Optional<ClaimedRun> claim = reached(whereabouts, () -> RunLookup.claim(whereabouts));
            if (claim.isPresent()) {
                return claim.get();
            }
        }
        if (lacking.isPresent()) {
            throw new LogSetupException(
                    "no role has created run " + whereabouts.run().id() + " within " + CREATION_PATIENCE.toSeconds()
                            + " s, and this one may not create it: " + lacking.get());
        }
        throw new ConfigException("there is no run " + whereabouts.run().id() + " on "
                + whereabouts.run().bootstrapServers() + " under the topics "
                + whereabouts.run().topics().prefix() + "* after " + CREATION_PATIENCE.toSeconds()
                + " s; 'millrace learn' and 'millrace admit' create it, as does any role with --config or --set");
    }

    private boolean run(Function<Pipeline, Role> made, MillraceConfig config, Map<String, Object> client, Meters meters)
            throws Exception {
        try (HttpEndpoint endpoint = HttpEndpoint.openIfWanted(
                        config.http(), config.metrics().port(), meters.registry());
                RunLog log = stop.starting(() -> reached(
                        config,
                        () -> config.open(
                                client,
                                config.sizedTopics(),
                                Optional.of(RecordedConfiguration.of(config).text()))))) {
            EpochEnd.requireEpoch(config, log.connection());
            agreed(log, config);
            AccountRights.requireNone(config, List.of(rights));
            endpoint.serve(log.registryContents());
            MillraceConfig here = stop.starting(() -> TokenizerFiles.forRole(
                    config, log.connection(), config.run().patience(), this::say));
            return run(made, here, log.connection().withPatience(config.run().patience()), meters, endpoint);
        }
    }

    private boolean run(
            Function<Pipeline, Role> made,
            MillraceConfig config,
            LogConnection connection,
            Meters meters,
            HttpEndpoint endpoint)
            throws Exception {
        try (StepOutputs outputs = StepOutputs.open(config.metrics(), connection, meters.registry());
                Pipeline pipeline = new Pipeline(config, connection, meters.registry(), Clock.systemUTC());
                RoleThreads threads = new RoleThreads(ModelSizes.stopLimit(config))) {
            Role role = made.apply(pipeline);
            int number = connection.run().epoch();
            out.println(role.name() + " of run " + config.run().id() + (number == 0 ? "" : ", epoch " + number) + " on "
                    + config.run().bootstrapServers() + ", topics "
                    + config.run().topics().prefix() + "*"
                    + endpoint.url()
                            .map(url -> ", metrics at " + url + "/metrics")
                            .orElse(""));
            out.flush();
            LogConnection own = connection.as(role.name());
            EpochEnd epoch = new EpochEnd(own, stop);
            threads.start(role);
            endpoint.answer(new Probes(
                    connection.alarms().pulses(),
                    ModelSizes.turnLimit(config),
                    () -> threads.failure().isPresent()));
            threads.start(epoch.role());
            threads.start(epoch.places());
            threads.start(epoch.clock(role.name()));
            if (role.name().equals(SHOWS_STEPS) || outputs.writesFiles()) {
                StepFollower steps = new StepFollower(own, step -> outputs.show(new StepRow(step)));
                threads.start(new Role("step log", steps, steps::stop));
            }
            watch(role, new Rates(meters.registry()), threads);
            pipeline.stopWaiting();
            threads.stop();
            if (threads.failure().isPresent()) {
                throw epoch.explained(threads.failure().get());
            }
            return !stop.isMade();
        }
    }

    /** Somebody else may have created the run meanwhile. */
    private void agreed(RunLog log, MillraceConfig config) {
        if (reconfigures) {
            log.reconfigure(RecordedConfiguration.of(config).text(), Clock.systemUTC());
        } else {
            RunLookup.configuration(log.claim()).ifPresent(recorded -> recorded.require(config, WAY_OUT));
        }
    }

    private void say(String line) {
        out.println(line);
        out.flush();
    }

    private void watch(Role role, Rates rates, RoleThreads threads) throws InterruptedException {
        long start = System.nanoTime();
        while (threads.failure().isEmpty() && !threads.hasEnded(role) && !stop.await(LINE_PERIOD_MS)) {
            rates.sample((System.nanoTime() - start) / 1e9);
            Double tokens = rates.tokensPerSecond().get(role.name());
            Double idle = rates.idle().get(role.name());
            Long version = rates.serving().get(role.name());
            out.println(role.name()
                    + (version == null ? "" : "  version " + version)
                    + (tokens == null ? "" : String.format(Locale.ROOT, "  tokens/s %.0f", tokens))
                    + (idle == null ? "" : String.format(Locale.ROOT, "  idle %.0f%%", 100 * idle)));
            out.flush();
        }
    }
}
