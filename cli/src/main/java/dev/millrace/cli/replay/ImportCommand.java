package dev.millrace.cli.replay;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.config.ClientFile;
import dev.millrace.cli.correct.ImportedRecords;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.RunImport;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.pipeline.AccountRights;
import dev.millrace.runtime.train.RunDirectory;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code millrace import}: verifies an archive, and puts it on a cluster or into a run's folder. */
@Command(
        name = "import",
        description = "Verifies an archive of 'millrace export' and restores every record at its own offset, on a "
                + "cluster or in a new run folder. Topics keep their names and are never deleted by retention. "
                + "With --records: builds an archive from another system's records, for doctor and replay "
                + "--corrections.",
        footer = {
            "",
            "millrace import my-run.archive --run-dir runs/my-run",
            "millrace import my-run.archive --verify",
            "millrace import --records 'dump/*.jsonl' --archive my-run.archive"
        })
public final class ImportCommand extends ScreenCommand {
    @Parameters(arity = "0..1", paramLabel = "DIR", description = "The archive's folder.")
    private Path folder;

    @Option(
            names = "--records",
            paramLabel = "FILES",
            description = "Another system's records: JSON lines or Parquet with one row per sequence; a file, or a "
                    + "folder with a quoted pattern; may be given often.")
    private List<String> records = new ArrayList<>();

    @Option(names = "--archive", paramLabel = "DIR", description = "With --records: new folder for the archive.")
    private Path made;

    @Option(
            names = "--run",
            paramLabel = "ID",
            description = "With --records: run id (default: the archive folder's name).")
    private String run;

    @Option(
            names = "--algorithm",
            paramLabel = "WHAT",
            description = "With --records: the other system's algorithm, by name or as YAML keys of algorithm "
                    + "(default: none, without weights and masks).")
    private String algorithm;

    @Option(names = "--run-dir", paramLabel = "DIR", description = "New folder of the run, as of 'millrace train'.")
    private Path runDirectory;

    @Option(names = "--bootstrap-servers", paramLabel = "HOST:PORT", description = "Kafka cluster to put it on.")
    private String bootstrapServers;

    @Mixin
    private ClientFile clientFile = new ClientFile();

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "One configuration key, such as kafka.security.protocol=SSL; may be given often.")
    private List<String> settings = new ArrayList<>();

    @Option(names = "--verify", description = "Only verify the hashes.")
    private boolean onlyVerify;

    @Option(names = "--verbose", description = "Show stack traces, and log more.")
    @SuppressWarnings("UnusedVariable") // the command line reads it before commands run
    private boolean verbose;

    @Override
    public Integer call() {
        if (!records.isEmpty()) {
            return ofRecords();
        }
        if (made != null || run != null || algorithm != null) {
            throw new ConfigException(
                    "--archive, --run and --algorithm belong to --records; leave them out, or give --records FILES");
        }
        if (folder == null) {
            throw new ConfigException(
                    "nothing to import; give an archive's folder, or --records FILES of another system");
        }
        if (onlyVerify
                ? runDirectory != null || bootstrapServers != null
                : (runDirectory == null) == (bootstrapServers == null)) {
            throw new ConfigException(
                    "no destination; give --run-dir DIR or --bootstrap-servers HOST:PORT, or --verify to import nothing");
        }
        try (ArchivedRun archive = new ArchivedRun(folder)) {
            archive.verify();
            if (archive.origin().isPresent() && !onlyVerify) {
                throw new RefusedRequestException(ImportedRecords.whatCanBeAsked(archive)
                        + "; give the folder to doctor --archive or replay --archive");
            }
            out().println("every file in " + folder + " matches its hash: run "
                    + archive.run().runId() + ", topics " + archive.topics().prefix() + "*"
                    + (archive.isWhole() ? "" : ", a range of it"));
            archive.held().ifPresent(held -> held.sentences().forEach(sentence -> paragraph("  ", sentence)));
            if (onlyVerify) {
                return 0;
            }
            if (bootstrapServers != null) {
                MillraceConfig config = config(archive, bootstrapServers);
                AccountRights.requireAll(config, RoleRights.IMPORT);
                put(archive, config, bootstrapServers);
            } else {
                intoFolder(archive);
            }
            return 0;
        }
    }

    private int ofRecords() {
        if (folder != null || runDirectory != null || bootstrapServers != null || !settings.isEmpty()) {
            throw new ConfigException(
                    "--records become an archive; leave out the folder, --run-dir, --bootstrap-servers and --set, and give --archive DIR");
        }
        if (onlyVerify == (made != null)) {
            throw new ConfigException("no destination; give --archive DIR, or --verify to write nothing");
        }
        String id = run != null
                ? run
                : made == null
                        ? "records"
                        : made.toAbsolutePath().normalize().getFileName().toString();
        ImportedRecords imported =
                new ImportedRecords(records, id, algorithm == null ? "none" : algorithm, out(), err());
        return onlyVerify ? imported.verify() : imported.archive(made);
    }

    private MillraceConfig config(ArchivedRun archive, String servers) {
        ConfigLayers layers = new ConfigLayers();
        archive.configuration()
                .map(text -> RecordedConfiguration.parse(text, "the archive's configuration"))
                .ifPresent(recorded -> layers.begunWith(recorded.tree()));
        clientFile.over(layers);
        settings.forEach(layers::set);
        return layers.set("run.id", archive.run().runId())
                .set("run.policy_id", archive.run().policyId())
                .set("run.topic_prefix", archive.topics().prefix())
                .set("run.bootstrap_servers", servers)
                .resolve();
    }

    private void intoFolder(ArchivedRun archive) {
        MillraceConfig config = config(archive, "");
        try (RunDirectory directory = RunDirectory.open(runDirectory)) {
            if (directory.resumed()) {
                throw new ConfigException(runDirectory + " holds a run; give --run-dir a new folder to import into");
            }
            try (EmbeddedBroker broker = EmbeddedBroker.start(directory.broker(), config.broker())) {
                put(archive, config, broker.bootstrapServers());
            }
            directory.write(
                    directory.config(),
                    ConfigTree.write(ConfigBinder.unbind(config))); // last: marks the folder as a run's
        }
        out().println("millrace ledger, trace and replay read it with --run-dir " + runDirectory);
    }

    /** Topics that the archive has, or had when it was written. */
    private static Set<String> partnerTopics(ArchivedRun archive) {
        return archive.topics().ofPartners().stream()
                .filter(topic -> !archive.partitions(topic).isEmpty())
                .collect(Collectors.toSet());
    }

    private void put(ArchivedRun archive, MillraceConfig config, String servers) {
        Map<String, Object> client = new HashMap<>(config.clientSettings());
        client.put("bootstrap.servers", servers);
        try (RunLog log = RunLog.open(
                client,
                archive.topics(),
                new RunLog.NewRun(
                        archive.run(),
                        partnerTopics(archive),
                        archive.configuration()
                                .map(text -> RecordedConfiguration.of(config).text())),
                keptForEver(config.topics(), archive),
                config.run().schemaRegistryUrl().written(),
                Clock.systemUTC())) {
            RunImport putting = new RunImport(archive, log.connection());
            ProgressLine.during("importing", putting::passed, putting.toPass(), err(), () -> {
                putting.run();
                return true;
            });
            out().printf(
                            "%,d offsets of run %s are on %s, topics %s*%n",
                            putting.toPass(),
                            archive.run().runId(),
                            servers,
                            archive.topics().prefix());
        }
    }

    /** Records keep their timestamps, so retention could delete them at once. */
    private static TopicsConfig keptForEver(TopicsConfig of, ArchivedRun archive) {
        int partitions = archive.partitions(archive.topics().rollouts()).size();
        return of.keptForEver().withPartitions(Math.max(1, partitions));
    }
}
