package dev.millrace.runtime.report;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.folder.FolderRun;
import dev.millrace.runtime.pipeline.RunLookup;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A run opened for reading: its log, with a broker started for it if needed; its broker's files; or an archive.
 *
 * <p>Creates nothing. A live run in a folder is read through its own broker. For a stopped one, {@link #open} starts
 * the broker: its folder is locked meanwhile, so the run cannot be resumed; another command waits a while for the lock.
 * {@link #read} reads the broker's files and locks nothing.
 */
public final class AuditedRun implements AutoCloseable {
    /** Readers give up sooner than roles, which must survive an outage. */
    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private final Resolved resolved;
    private final @Nullable ClaimedRun claim;
    private final RunRecords records;
    private final @Nullable RunDirectory directory;
    private final @Nullable EmbeddedBroker broker;

    private AuditedRun(
            Resolved resolved,
            @Nullable ClaimedRun claim,
            RunRecords records,
            @Nullable RunDirectory directory,
            @Nullable EmbeddedBroker broker) {
        this.resolved = resolved;
        this.claim = claim;
        this.records = records;
        this.directory = directory;
        this.broker = broker;
    }

    /**
     * Opens the log of a run.
     *
     * @param over options that override the recorded configuration
     * @param folder null for a run on a cluster
     * @param described whether the options describe a run without a recorded configuration
     * @param options that let a command find the run
     * @param isWhole whether all of its topics must be there
     */
    public static AuditedRun open(
            Function<ObjectNode, ConfigLayers> over,
            @Nullable Path folder,
            boolean described,
            String options,
            boolean isWhole) {
        return Question.of(over, described, options, isWhole).byBroker(folder);
    }

    /**
     * Opens a run to read its {@link #records}: as {@link #open}, or from the broker's files if these are complete. A
     * killed broker has to be started, because it completes transactions.
     */
    public static AuditedRun read(
            Function<ObjectNode, ConfigLayers> over, @Nullable Path folder, boolean described, String options) {
        Question question = Question.of(over, described, options, true);
        return folder != null
                        && question.hasBroker()
                        && !RunDirectory.isRunning(folder)
                        && FolderRun.isComplete(
                                folder, question.whereabouts().run().topics())
                ? question.byFiles(folder)
                : question.byBroker(folder);
    }

    /** Opens the run of a folder: through its broker while it is live, otherwise from the broker's files. */
    public static AuditedRun inFolder(Path folder) {
        Question question = Question.of(folder);
        return question.hasBroker() && !RunDirectory.isRunning(folder)
                ? question.byFiles(folder)
                : question.byBroker(folder);
    }

    /**
     * Opens the live run of a folder through its broker without checking the folder's lock, for the process that holds
     * it.
     *
     * @param bootstrapServers of that broker; ignored for a run on a cluster, whose configuration names it
     */
    public static AuditedRun at(String bootstrapServers, Path folder) {
        Question question = Question.of(folder);
        return question.on(
                question.hasBroker()
                        ? bootstrapServers
                        : question.whereabouts().run().bootstrapServers(),
                null,
                null);
    }

    /**
     * Opens an archive.
     *
     * @param file the run's configuration, where the archive has none; else null
     */
    public static AuditedRun inArchive(Path folder, @Nullable Path file) {
        ArchivedRun archive = new ArchivedRun(folder);
        archive.verify();
        return new AuditedRun(
                new Resolved(configuration(archive, file), archive.configuration()), null, archive, null, null);
    }

    /**
     * The configuration of an archive's run.
     *
     * @param file in place of the archive's; else null
     * @throws ConfigException if neither is there
     */
    public static MillraceConfig configuration(ArchivedRun archive, @Nullable Path file) {
        return ConfigBinder.bind(
                MillraceConfig.defaults(),
                file != null
                        ? ConfigTree.read(file)
                        : ConfigTree.parse(
                                archive.configuration()
                                        .orElseThrow(() -> new ConfigException(
                                                "the archive has no configuration; give the run's with --config FILE")),
                                "the archive's configuration"));
    }

    /** Identifies the run as in {@link #open}. */
    private record Question(
            MillraceConfig whereabouts,
            Function<ObjectNode, ConfigLayers> over,
            boolean described,
            String options,
            boolean isWhole) {
        static Question of(
                Function<ObjectNode, ConfigLayers> over, boolean described, String options, boolean isWhole) {
            return new Question(over.apply(ConfigTree.empty()).whereabouts(), over, described, options, isWhole);
        }

        static Question of(Path folder) {
            return of(
                    recorded -> new ConfigLayers()
                            .begunWith(ConfigTree.read(RunDirectory.config(folder)))
                            .begunWith(recorded),
                    true,
                    "--run-dir " + folder,
                    true);
        }

        AuditedRun byBroker(@Nullable Path folder) {
            if (folder == null || !hasBroker()) {
                return on(whereabouts.run().bootstrapServers(), null, null);
            }
            if (RunDirectory.isRunning(folder)) {
                String address = RunDirectory.brokerAddress(folder);
                if (address.isEmpty()) {
                    throw new RefusedRequestException("the run in " + folder
                            + " is starting and has not written its broker's address yet; try again in a few seconds");
                }
                return on(address, null, null);
            }
            RunDirectory directory = RunDirectory.lend(folder);
            EmbeddedBroker broker = null;
            try {
                broker = EmbeddedBroker.start(
                        directory.broker(),
                        over.apply(ConfigTree.empty()).resolve().broker());
                return on(broker.bootstrapServers(), directory, broker);
            } catch (RuntimeException e) {
                if (broker != null) {
                    broker.close();
                }
                directory.close();
                throw e;
            }
        }

        AuditedRun on(String bootstrapServers, @Nullable RunDirectory directory, @Nullable EmbeddedBroker broker) {
            Map<String, Object> client = new HashMap<>(whereabouts.clientSettings());
            client.put("bootstrap.servers", bootstrapServers);
            String registry = whereabouts.run().schemaRegistryUrl().written();
            RunLog log = isWhole
                    ? RunLog.find(client, whereabouts.run().topics(), whereabouts.topics(), registry)
                    : RunLog.findDamaged(client, whereabouts.run().topics(), whereabouts.topics(), registry);
            try {
                Resolved resolved = resolve(log.claim());
                LogConnection connection = log.with(resolved.config().topics())
                        .connection()
                        .reachedBy(options)
                        .withPatience(PATIENCE);
                return new AuditedRun(resolved, log.claim(), connection, directory, broker);
            } catch (RuntimeException e) {
                log.close();
                throw e;
            }
        }

        boolean hasBroker() {
            return whereabouts.run().embedded();
        }

        AuditedRun byFiles(Path folder) {
            FolderRun files = FolderRun.open(folder, whereabouts);
            try {
                return new AuditedRun(resolve(files.claim()).withTokenizerOf(folder), files.claim(), files, null, null);
            } catch (RuntimeException e) {
                files.close();
                throw e;
            }
        }

        private Resolved resolve(ClaimedRun claim) {
            requireValidEpoch(whereabouts.run().epoch(), claim.run());
            Optional<RecordedConfiguration> recorded = RunLookup.configuration(claim);
            MillraceConfig config = over.apply(
                            recorded.map(RecordedConfiguration::tree).orElseGet(ConfigTree::empty))
                    .resolve()
                    .withRunId(claim.run().runId());
            recorded.ifPresent(found -> found.require(config, "leave the key out"));
            Optional<String> text = recorded.isPresent()
                    ? recorded.map(RecordedConfiguration::text)
                    : described ? Optional.of(RecordedConfiguration.of(config).text()) : Optional.empty();
            return new Resolved(config, text);
        }

        /** Only the valid epoch can be audited; ledger and trace also show older ones. */
        private static void requireValidEpoch(int asked, RunIdentity valid) {
            if (asked >= 0 && asked != valid.epoch()) {
                throw new ConfigException("run.epoch is " + asked + ", and run " + valid.runId() + " is in epoch "
                        + valid.epoch()
                        + ", the epoch that is read; leave run.epoch out: ledger and trace cover all epochs");
            }
        }
    }

    /**
     * A run's configuration.
     *
     * @param text what speaks for the run, to go with its records; empty if nobody says
     */
    private record Resolved(MillraceConfig config, Optional<String> text) {
        /** A run on text leaves the files of its tokenizer in its folder. */
        Resolved withTokenizerOf(Path folder) {
            Path files = folder.resolve("tokenizer");
            return config.task() instanceof TextTask task
                            && task.tokenizer() instanceof TokenizerDirectory directory
                            && Files.isRegularFile(files.resolve(TokenizerDirectory.FILE))
                    ? new Resolved(config.withTask(task.with(directory.in(files))), text)
                    : this;
        }
    }

    /** The run's records; valid while this is open. */
    public RunRecords records() {
        return records;
    }

    public RecordedRun recordedRun() {
        return records instanceof RecordedRun recorded ? recorded : new LiveRun(connection(), recorded());
    }

    /** The run's log; empty if files are read. */
    public Optional<LogConnection> log() {
        return records instanceof LogConnection connection ? Optional.of(connection) : Optional.empty();
    }

    /** The run's log; only for a run that was opened through its broker. */
    public LogConnection connection() {
        return log().orElseThrow(() -> new IllegalStateException("files are read, and no log is open"));
    }

    /** The run's claim as read when this was opened; an archive has none. */
    public ClaimedRun claim() {
        return Objects.requireNonNull(claim);
    }

    /** Opens the log for writing in the run's current epoch; the caller closes it. */
    public RunLog toWrite() {
        return RunLog.open(
                connection().clientProperties(),
                records.topics(),
                new RunLog.NewRun(
                        records.run(), config().topology().join().partnerTopics(records.topics()), Optional.empty()),
                config().topics(),
                config().run().schemaRegistryUrl().written(),
                Clock.systemUTC());
    }

    /** The run's configuration overridden by the caller's. */
    public MillraceConfig config() {
        return resolved.config();
    }

    /** The run-scope configuration to store with its records; empty if unknown. */
    public Optional<String> recorded() {
        return resolved.text();
    }

    /** One-line description of the run. */
    public String title() {
        RunIdentity run = records.run();
        return "run " + run.runId() + (run.epoch() == 0 ? "" : ", epoch " + run.epoch()) + ", topics "
                + records.topics().prefix() + "*";
    }

    @Override
    public void close() {
        records.registry().close();
        if (broker != null) {
            broker.close();
        }
        if (directory != null) {
            directory.close();
        }
    }
}
