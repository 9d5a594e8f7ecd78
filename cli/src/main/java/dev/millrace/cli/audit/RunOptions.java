package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.HelpHeading;
import dev.millrace.cli.config.ClientFile;
import dev.millrace.cli.config.ConfigOptions;
import dev.millrace.gateway.HttpConfig;
import dev.millrace.log.Alarm;
import dev.millrace.log.run.ClusterRuns;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.RoleRights;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.AccountRights;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.runtime.train.AlarmFile;
import dev.millrace.runtime.train.RunDirectory;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/** Options that select a run: on a cluster, or the folder of a run with its own broker. */
@HelpHeading("Which run")
public final class RunOptions {
    /** Longest wait for records that do not come. */
    public static final Duration PATIENCE = Duration.ofSeconds(30);

    @Option(
            names = "--run-dir",
            paramLabel = "DIR",
            description = "Folder of a run of 'millrace train'; starts its broker if it is down and needed.")
    private Path runDirectory;

    @Option(
            names = "--bootstrap-servers",
            paramLabel = "HOST:PORT",
            description = "Kafka cluster of the run, in place of a folder.")
    private String bootstrapServers;

    @Mixin
    private ClientFile clientFile = new ClientFile();

    @Option(
            names = "--run",
            paramLabel = "ID",
            description = "Run id; topics begin with millrace.<id>. unless --topic-prefix is given.")
    private String run;

    @Option(names = "--topic-prefix", paramLabel = "PREFIX", description = "Prefix of the run's topics.")
    private String topicPrefix;

    @Option(
            names = "--config",
            paramLabel = "FILE",
            description = "YAML file with client settings, or the configuration of a run that recorded none.")
    private Path file;

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "One configuration key, such as kafka.security.protocol=SSL; may be given often.")
    private List<String> settings = new ArrayList<>();

    @Option(names = "--verbose", description = "Show stack traces, and log more.")
    @SuppressWarnings("UnusedVariable") // the command line reads it before commands run
    private boolean verbose;

    private RoleRights account = RoleRights.READER;

    public boolean isGiven() {
        return runDirectory != null || bootstrapServers != null || run != null || topicPrefix != null;
    }

    /** Refuses these options beside an archive, which names the run itself. */
    public void requireNotBeside(@Nullable Path archive) {
        if (archive != null && isGiven()) {
            throw new ConfigException(
                    "--archive names the run; leave out --run-dir, --run and --bootstrap-servers, or --archive");
        }
    }

    /** The given configuration file; null if none. */
    public Path file() {
        return file;
    }

    /** Current alarms in the run's folder; empty for a run on a cluster, whose roles log and meter them. */
    public List<Alarm> alarms() {
        return runDirectory == null ? List.of() : AlarmFile.read(runDirectory);
    }

    /** How the run continues, as a sentence. */
    public String goesOn() {
        return runDirectory != null
                ? "millrace train --run-dir " + runDirectory + " continues from there"
                : "start its roles again; each continues from there";
    }

    /** The given folder; null if the run is on a cluster. */
    public Path folder() {
        return runDirectory;
    }

    /** Display name of a run on a cluster. */
    public String name() {
        return run != null ? run : topicPrefix != null ? topicPrefix : "run";
    }

    /** The given options, to name the run in another command. */
    public String asGiven() {
        Map<String, Object> given = new LinkedHashMap<>();
        given.put("--run-dir", runDirectory);
        given.put("--bootstrap-servers", bootstrapServers);
        given.put("--run", run);
        given.put("--topic-prefix", topicPrefix);
        given.put("--config", file);
        given.put("--command-config", clientFile.file());
        given.values().removeIf(Objects::isNull);
        return given.entrySet().stream()
                .map(option -> option.getKey() + " " + option.getValue())
                .collect(Collectors.joining(" "));
    }

    public AuditedRun open() {
        return open(true);
    }

    /** Opens the run to read its records; starts a folder's broker only after an unclean stop. */
    public AuditedRun read() {
        whereabouts();
        return AuditedRun.read(this::over, runDirectory, runDirectory != null || file != null, asGiven());
    }

    /** As {@link #open()}, for a run that may only have its claim left. */
    public AuditedRun openDamaged() {
        return open(false);
    }

    @SuppressWarnings("SystemConsoleNull") // only needed in some JDKs; others print a line on stderr
    private AuditedRun open(boolean isWhole) {
        whereabouts();
        if (runDirectory != null && System.console() != null && !RunDirectory.isRunning(runDirectory)) {
            System.err.println("starting the broker of " + runDirectory + ", to read its log");
        }
        return AuditedRun.open(this::over, runDirectory, runDirectory != null || file != null, asGiven(), isWhole);
    }

    /**
     * Location of the run.
     *
     * @throws ConfigException if the options do not select a run
     */
    MillraceConfig whereabouts() {
        if (runDirectory != null && (bootstrapServers != null || file != null)) {
            throw new ConfigException("--run-dir names the run; leave out "
                    + (file != null ? "--config" : "--bootstrap-servers") + ", or --run-dir");
        }
        if (runDirectory != null && !RunDirectory.holdsRun(runDirectory)) {
            throw new ConfigException(runDirectory
                    + " holds no run (it has no config.yaml); give --run-dir a folder such as runs/<run id>");
        }
        MillraceConfig whereabouts = over(ConfigTree.empty()).whereabouts();
        if (runDirectory == null && whereabouts.run().embedded()) {
            throw new ConfigException("no run given; give --run-dir DIR for a run in a folder, or"
                    + " --bootstrap-servers HOST:PORT with --run ID for one on a cluster");
        }
        if (whereabouts.run().id().isEmpty() && whereabouts.run().topicPrefix().isEmpty()) {
            throw new ConfigException(
                    "no run given on " + whereabouts.run().bootstrapServers()
                            + "; give --run ID, or --topic-prefix PREFIX if its topics have another prefix than millrace.<id>.");
        }
        return whereabouts;
    }

    /** Sets the required rights, if they are not a reader's. */
    void needs(RoleRights needed) {
        account = needed;
    }

    /**
     * Refuses a command that writes to a run on a cluster if its account lacks a right.
     *
     * @throws LogSetupException naming each right that is missing
     */
    void require(RoleRights needed) {
        needs(needed);
        MillraceConfig whereabouts = whereabouts();
        if (!whereabouts.run().embedded()) {
            AccountRights.requireAll(whereabouts, needed);
        }
    }

    /** Replaces an authorization failure by one that names the missing rights. */
    public static Exception explained(CommandSpec command, Exception failure) {
        if (!(failure instanceof RuntimeException unchecked) || !AccountRights.isCauseOf(failure)) {
            return failure;
        }
        for (CommandSpec mixin : command.mixins().values()) {
            if (mixin.userObject() instanceof RunOptions options) {
                return AccountRights.explained(options.whereabouts(), List.of(options.account), unchecked);
            }
            Exception explained = explained(mixin, failure);
            if (explained != failure) {
                return explained;
            }
        }
        return failure;
    }

    /** Listener settings from this command's options, not from the run's folder. */
    public HttpConfig http() {
        ConfigLayers layers = new ConfigLayers();
        if (file != null) {
            layers.file(file);
        }
        settings.forEach(layers::set);
        return layers.whereabouts().http();
    }

    /** Client settings with the cluster's address. */
    public static Map<String, Object> client(MillraceConfig whereabouts) {
        Map<String, Object> client = new HashMap<>(whereabouts.clientSettings());
        client.put("bootstrap.servers", whereabouts.run().bootstrapServers());
        return client;
    }

    /** Runs of the named cluster. */
    static ClusterRuns cluster(MillraceConfig whereabouts) {
        return new ClusterRuns(
                client(whereabouts),
                whereabouts.topics(),
                whereabouts.run().schemaRegistryUrl().written(),
                Clock.systemUTC());
    }

    /** The recorded configuration overridden by the run's folder and these options. */
    public ConfigLayers over(ObjectNode recorded) {
        ConfigLayers layers = new ConfigLayers();
        if (runDirectory != null) {
            layers.begunWith(ConfigTree.read(RunDirectory.config(runDirectory)));
        }
        layers.begunWith(recorded);
        if (file != null) {
            layers.file(file);
        }
        clientFile.over(layers);
        settings.forEach(layers::set);
        ConfigOptions.set(layers, "run.bootstrap_servers", bootstrapServers);
        ConfigOptions.set(layers, "run.id", run);
        ConfigOptions.set(layers, "run.topic_prefix", topicPrefix);
        return layers;
    }
}
