package dev.millrace.view.follow;

import dev.millrace.log.SecretSettings;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.ArchivedSchemas;
import dev.millrace.replay.archive.CursorFetcher;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.SeekingCursor;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.pipeline.RunLookup;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.schemas.registry.RestSchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A run that has ended in its folder, by its broker's files. Only what is asked for is read: of a partition nobody asks of, nothing. Thread-safe; its
 * cursors are not.
 *
 * <p>Not an {@link dev.millrace.replay.archive.ArchivedRun}: nothing was exported, so the log itself says what the run is, its files are a broker's, with
 * transactions to be followed in them and without hashes, and it may go on the moment after. It stands here and not beside the archive because the run's
 * configuration, which says under which prefix and registry to look, is the runtime's, and no module below that may know it.
 */
public final class FolderRun implements RecordedRun {
    private static final String BROKER = "broker";

    private final BrokerFiles files;
    private final SchemaRegistry registry;
    private final ClaimedRun claim;
    private final EpochLineage lineage;
    private final RunTopics topics;
    private final MillraceConfig config;

    private FolderRun(
            BrokerFiles files,
            SchemaRegistry registry,
            ClaimedRun claim,
            EpochLineage lineage,
            RunTopics topics,
            MillraceConfig config) {
        this.files = files;
        this.registry = registry;
        this.claim = claim;
        this.lineage = lineage;
        this.topics = topics;
        this.config = config;
    }

    /** True if the run of a folder has a broker of its own in it, and is not on a cluster. */
    public static boolean isIn(Path folder) {
        return layers(folder).whereabouts().run().embedded();
    }

    /**
     * Opens the run.
     *
     * @param folder with a run that has a broker of its own
     * @throws dev.millrace.replay.archive.ArchiveException if the broker has left no files
     * @throws LogSetupException if they hold no run
     */
    public static FolderRun open(Path folder) {
        MillraceConfig whereabouts = layers(folder).whereabouts();
        RunTopics topics = whereabouts.run().topics();
        BrokerFiles files = BrokerFiles.in(folder.resolve(BROKER));
        SchemaRegistry registry = registry(whereabouts, files);
        ClaimedRun claim = RunLog.claimed(topics, registry, all(files, topics.run()))
                .orElseThrow(() -> new LogSetupException("the log in " + folder
                        + " holds no run under the topic prefix '"
                        + topics.prefix() + "': it was not created to the end; start it once more with train --run-dir "
                        + folder));
        ConfigLayers layers = layers(folder);
        Optional<RecordedConfiguration> recorded = RunLookup.configuration(claim);
        recorded.ifPresent(found -> layers.begunWith(found.tree()));
        return new FolderRun(
                files,
                registry,
                claim,
                claim.lineage(claim.run().epoch()),
                topics,
                layers.resolve().withRunId(claim.run().runId()));
    }

    private static ConfigLayers layers(Path folder) {
        return new ConfigLayers().begunWith(ConfigTree.read(RunDirectory.config(folder)));
    }

    private static SchemaRegistry registry(MillraceConfig whereabouts, BrokerFiles files) {
        String url = whereabouts.run().schemaRegistryUrl().written();
        return url.isEmpty()
                ? new ArchivedSchemas(
                        LogSchemaRegistry.texts(all(files, whereabouts.topics().schemasTopic())))
                : new RestSchemaRegistry(
                        SecretSettings.address("run.schema_registry_url", url),
                        false,
                        whereabouts.topics().timeoutMs());
    }

    private static List<ConsumerRecord<byte[], byte[]>> all(BrokerFiles files, String topic) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (TopicPartition partition : files.partitions(topic)) {
            PartitionFiles of = files.of(partition);
            try (FilesCursor cursor = new FilesCursor(partition, of, of.range().from())) {
                for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                        next.isPresent();
                        next = cursor.next()) {
                    records.add(next.get());
                }
            }
        }
        return records;
    }

    /** The same run with what its earlier epochs have left as well. */
    public FolderRun withEveryEpoch() {
        return new FolderRun(files, registry, claim, EpochLineage.FIRST, topics, config);
    }

    /** Its claim, as its log has it. */
    public ClaimedRun claim() {
        return claim;
    }

    /** Its configuration, as its log has it. */
    public MillraceConfig config() {
        return config;
    }

    /** Of how many partitions anything was read so far. */
    public int partitionsRead() {
        return files.partitionsRead();
    }

    @Override
    public RunIdentity run() {
        return claim.run();
    }

    @Override
    public EpochLineage lineage() {
        return lineage;
    }

    @Override
    public RunTopics topics() {
        return topics;
    }

    @Override
    public SchemaRegistry registry() {
        return registry;
    }

    @Override
    public Optional<String> configuration() {
        return claim.configuration();
    }

    @Override
    public List<TopicPartition> partitions(String topic) {
        return files.partitions(topic);
    }

    @Override
    public Range range(TopicPartition partition) {
        Range all = files.of(partition).range();
        return Range.ofEpoch(topics, lineage, partition, all.from(), all.end());
    }

    @Override
    public SeekingCursor read(TopicPartition partition, long from) {
        return new FilesCursor(
                partition, files.of(partition), Math.max(from, range(partition).from()));
    }

    @Override
    public RecordFetcher fetcher() {
        // places may be of what an earlier epoch has left
        return new CursorFetcher((partition, from) -> new FilesCursor(partition, files.of(partition), from));
    }

    /** False: who follows a run that goes on asks its broker. */
    @Override
    public boolean hasGrown() {
        return false;
    }

    @Override
    public void close() {
        registry.close();
    }
}
