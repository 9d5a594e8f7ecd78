package dev.millrace.runtime.folder;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.RunLog;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.RunImport;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.train.RunDirectory;
import java.nio.file.Path;
import java.time.Clock;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** The recorded run imported into a cluster, or into the folder of an ended run. */
public final class ImportedRun {
    /** The run that an earlier commit recorded and archived: 372 rollouts, six steps, seven batches and more. */
    public static final Path ARCHIVE = Path.of("..", "cli", "src", "test", "resources", "archives", "contract-3");

    private ImportedRun() {}

    /** Makes a run's folder of it, whose broker is down. */
    public static void into(Path folder) {
        try (ArchivedRun archive = new ArchivedRun(ARCHIVE);
                RunDirectory directory = RunDirectory.open(folder)) {
            MillraceConfig config = config(archive, "");
            try (EmbeddedBroker broker = EmbeddedBroker.start(directory.broker(), config.broker())) {
                put(archive, config, Map.of("bootstrap.servers", broker.bootstrapServers()));
            }
            directory.write(directory.config(), ConfigTree.write(ConfigBinder.unbind(config)));
        }
    }

    /**
     * Puts it on a cluster.
     *
     * @param client settings of one who may create topics
     */
    public static void onto(Map<String, Object> client) {
        try (ArchivedRun archive = new ArchivedRun(ARCHIVE)) {
            put(archive, config(archive, String.valueOf(client.get("bootstrap.servers"))), client);
        }
    }

    private static MillraceConfig config(ArchivedRun archive, String servers) {
        ConfigLayers layers = new ConfigLayers();
        archive.configuration()
                .map(text -> RecordedConfiguration.parse(text, "the archive's configuration"))
                .ifPresent(recorded -> layers.begunWith(recorded.tree()));
        return layers.set("run.id", archive.run().runId())
                .set("run.policy_id", archive.run().policyId())
                .set("run.topic_prefix", archive.topics().prefix())
                .set("run.bootstrap_servers", servers)
                .resolve();
    }

    private static void put(ArchivedRun archive, MillraceConfig config, Map<String, Object> client) {
        try (RunLog log = RunLog.open(
                new HashMap<>(client),
                archive.topics(),
                new RunLog.NewRun(
                        archive.run(),
                        Set.of(),
                        archive.configuration()
                                .map(text -> RecordedConfiguration.of(config).text())),
                config.topics().keptForEver(),
                "",
                Clock.systemUTC())) {
            new RunImport(archive, log.connection()).run();
        }
    }
}
