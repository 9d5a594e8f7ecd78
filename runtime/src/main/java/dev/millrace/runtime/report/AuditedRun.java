package dev.millrace.runtime.report;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.pipeline.RunLookup;
import dev.millrace.runtime.train.RunDirectory;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A run that is asked about: its log, and the broker that had to be started to read it, if any.
 *
 * <p>Nothing is created. A run that continues in its folder is asked at its own broker; one that has ended has its folder
 * locked meanwhile, so that it cannot go on half way: who wants it waits a while for it.
 */
public final class AuditedRun implements AutoCloseable {
    /** Who asks waits no longer for what may be lost; a role, which is to outlive an outage, does. */
    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private final MillraceConfig config;
    private final Optional<String> recorded;
    private final @Nullable RunDirectory directory;
    private final @Nullable EmbeddedBroker broker;
    private final RunLog log;
    private LogConnection connection;

    private AuditedRun(
            MillraceConfig config,
            Optional<String> recorded,
            @Nullable RunDirectory directory,
            @Nullable EmbeddedBroker broker,
            RunLog log) {
        this.config = config;
        this.recorded = recorded;
        this.directory = directory;
        this.broker = broker;
        this.log = log;
        this.connection = log.connection();
    }

    /**
     * Opens the log of a run.
     *
     * @param over what is said of the run, put over what is recorded of it
     * @param folder null for a run on a cluster
     * @param described whether somebody says what the run computes, where nothing is recorded of it
     * @param options with which a command finds the run
     * @param isWhole whether all of its topics must be there
     */
    public static AuditedRun open(
            Function<ObjectNode, ConfigLayers> over,
            @Nullable Path folder,
            boolean described,
            String options,
            boolean isWhole) {
        AuditedRun found = found(over, folder, described, isWhole);
        found.connection = found.log.connection().reachedBy(options).withPatience(PATIENCE);
        return found;
    }

    /** Opens the run of a folder, going on or ended. */
    public static AuditedRun inFolder(Path folder) {
        return open(recorded -> over(folder, recorded), folder, true, "--run-dir " + folder, true);
    }

    /**
     * Opens the run that continues in a folder by the broker that it has, without a look at the folder's lock: for the process that holds it.
     *
     * @param bootstrapServers of that broker; of no account for a run on a cluster, which its configuration names
     */
    public static AuditedRun at(String bootstrapServers, Path folder) {
        MillraceConfig whereabouts = over(folder, ConfigTree.empty()).whereabouts();
        AuditedRun found = find(
                whereabouts,
                recorded -> over(folder, recorded),
                true,
                true,
                whereabouts.run().embedded()
                        ? bootstrapServers
                        : whereabouts.run().bootstrapServers(),
                null,
                null);
        found.connection =
                found.log.connection().reachedBy("--run-dir " + folder).withPatience(PATIENCE);
        return found;
    }

    private static ConfigLayers over(Path folder, ObjectNode recorded) {
        return new ConfigLayers()
                .begunWith(ConfigTree.read(RunDirectory.config(folder)))
                .begunWith(recorded);
    }

    private static AuditedRun found(
            Function<ObjectNode, ConfigLayers> over, @Nullable Path folder, boolean described, boolean isWhole) {
        MillraceConfig whereabouts = over.apply(ConfigTree.empty()).whereabouts();
        if (folder == null || !whereabouts.run().embedded()) {
            return find(whereabouts, over, described, isWhole, whereabouts.run().bootstrapServers(), null, null);
        }
        if (RunDirectory.isRunning(folder)) {
            String address = RunDirectory.brokerAddress(folder);
            if (address.isEmpty()) {
                throw new RefusedRequestException("the run in " + folder
                        + " goes on and has not said yet where its broker is; try again in a few seconds");
            }
            return find(whereabouts, over, described, isWhole, address, null, null);
        }
        RunDirectory directory = RunDirectory.lend(folder);
        EmbeddedBroker broker = null;
        try {
            broker = EmbeddedBroker.start(
                    directory.broker(), over.apply(ConfigTree.empty()).resolve().broker());
            return find(whereabouts, over, described, isWhole, broker.bootstrapServers(), directory, broker);
        } catch (RuntimeException e) {
            if (broker != null) {
                broker.close();
            }
            directory.close();
            throw e;
        }
    }

    private static AuditedRun find(
            MillraceConfig whereabouts,
            Function<ObjectNode, ConfigLayers> over,
            boolean described,
            boolean isWhole,
            String bootstrapServers,
            @Nullable RunDirectory directory,
            @Nullable EmbeddedBroker broker) {
        Map<String, Object> client = new HashMap<>(whereabouts.clientSettings());
        client.put("bootstrap.servers", bootstrapServers);
        String registry = whereabouts.run().schemaRegistryUrl().written();
        RunLog log = isWhole
                ? RunLog.find(client, whereabouts.run().topics(), whereabouts.topics(), registry)
                : RunLog.findDamaged(client, whereabouts.run().topics(), whereabouts.topics(), registry);
        try {
            requireValidEpoch(whereabouts, log);
            Optional<RecordedConfiguration> recorded = RunLookup.configuration(log.claim());
            MillraceConfig config = over.apply(
                            recorded.map(RecordedConfiguration::tree).orElseGet(ConfigTree::empty))
                    .resolve()
                    .withRunId(log.connection().run().runId());
            recorded.ifPresent(found -> found.require(config, "leave the key out"));
            Optional<String> text = recorded.isPresent()
                    ? recorded.map(RecordedConfiguration::text)
                    : described ? Optional.of(RecordedConfiguration.of(config).text()) : Optional.empty();
            return new AuditedRun(config, text, directory, broker, log.with(config.topics()));
        } catch (RuntimeException e) {
            log.close();
            throw e;
        }
    }

    /** What a run is asked about is its valid epoch; of older ones ledger and trace tell beside it. */
    private static void requireValidEpoch(MillraceConfig whereabouts, RunLog log) {
        int asked = whereabouts.run().epoch();
        int valid = log.connection().run().epoch();
        if (asked >= 0 && asked != valid) {
            throw new ConfigException("run.epoch is " + asked + ", and run "
                    + log.connection().run().runId() + " is in epoch " + valid
                    + ", which is the one that is read; leave run.epoch out: ledger and trace tell of all epochs");
        }
    }

    /** The run's log. */
    public LogConnection connection() {
        return connection;
    }

    /** What the run's claim says, as it was before anybody opened the run anew. */
    public ClaimedRun claim() {
        return log.claim();
    }

    /** The same log for one who writes to it, in the epoch in which the run is now; the caller closes it. */
    public RunLog toWrite() {
        return RunLog.open(
                log.connection().clientProperties(),
                log.connection().topics(),
                config.topology().join().partnerTopics(log.connection().topics()),
                log.connection().run(),
                config.topics(),
                config.run().schemaRegistryUrl().written(),
                Optional.empty(),
                Clock.systemUTC());
    }

    /** The configuration that was asked with, over that of the run itself. */
    public MillraceConfig config() {
        return config;
    }

    /** What speaks for the run in its configuration, to go with its records; empty if nobody says. */
    public Optional<String> recorded() {
        return recorded;
    }

    /** Which run it is, on one line. */
    public String title() {
        var run = log.connection().run();
        return "run " + run.runId() + (run.epoch() == 0 ? "" : ", epoch " + run.epoch()) + ", topics "
                + log.connection().topics().prefix() + "*";
    }

    @Override
    public void close() {
        log.close();
        if (broker != null) {
            broker.close();
        }
        if (directory != null) {
            directory.close();
        }
    }
}
