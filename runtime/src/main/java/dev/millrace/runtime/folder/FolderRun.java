package dev.millrace.runtime.folder;

import dev.millrace.log.SecretSettings;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.ArchivedSchemas;
import dev.millrace.replay.archive.CursorFetcher;
import dev.millrace.replay.archive.CursorScan;
import dev.millrace.replay.archive.RecordCursor.SeekingCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.registry.RestSchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;
import org.jspecify.annotations.Nullable;

/**
 * A stopped run in its folder, read from its broker's files. Reads a partition's files only when it is asked about the
 * partition. Holds no lock: the run may continue meanwhile. Thread-safe; its cursors and scans are not.
 */
public final class FolderRun implements RecordedRun, RunRecords {
    private static final String BROKER = "broker";
    /** A broker writes it after a clean shutdown, and removes it when it starts. */
    private static final String ENDED_IN_ORDER = ".kafka_cleanshutdown";

    private final BrokerFiles files;
    private final SchemaRegistry registry;
    private final ClaimedRun claim;
    private final EpochLineage lineage;
    private final RunTopics topics;

    private FolderRun(
            BrokerFiles files, SchemaRegistry registry, ClaimedRun claim, EpochLineage lineage, RunTopics topics) {
        this.files = files;
        this.registry = registry;
        this.claim = claim;
        this.lineage = lineage;
        this.topics = topics;
    }

    /**
     * Opens the run.
     *
     * @param whereabouts says under which prefix the run is, and where its schemas are
     * @throws dev.millrace.replay.archive.ArchiveException if the broker has left no files
     * @throws LogSetupException if they hold no run
     */
    public static FolderRun open(Path folder, MillraceConfig whereabouts) {
        RunTopics topics = whereabouts.run().topics();
        BrokerFiles files = BrokerFiles.in(folder.resolve(BROKER));
        SchemaRegistry registry = registry(whereabouts, files);
        ClaimedRun claim = RunLog.claimed(topics, registry, all(files, topics.run()))
                .orElseThrow(() -> new LogSetupException("the log in " + folder
                        + " holds no run under the topic prefix '"
                        + topics.prefix() + "': it was only partly created; start it again with train --run-dir "
                        + folder));
        return new FolderRun(files, registry, claim, claim.lineage(claim.run().epoch()), topics);
    }

    /**
     * Returns whether a folder's files are complete: its broker was shut down cleanly, and no topic of the run was
     * deleted.
     */
    public static boolean isComplete(Path folder, RunTopics topics) {
        Path broker = folder.resolve(BROKER);
        return Files.exists(broker.resolve(ENDED_IN_ORDER))
                && BrokerFiles.in(broker).topics().containsAll(topics.required());
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

    public FolderRun withEveryEpoch() {
        return new FolderRun(files, registry, claim, EpochLineage.FIRST, topics);
    }

    /** Its claim, as its log has it. */
    public ClaimedRun claim() {
        return claim;
    }

    /** Number of partitions read so far. */
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
    public TopicScan scan(Duration patience) {
        return new CursorScan(files, topics);
    }

    @Override
    public RecordFetcher fetcher() {
        // positions may belong to an earlier epoch
        return new CursorFetcher(files::read);
    }

    /** False: a live run is followed through its broker. */
    @Override
    public boolean hasGrown() {
        return false;
    }

    @Override
    public void close() {
        registry.close();
    }

    /** A Kafka broker's log directory: a folder per partition, and each partition's log start offset. Thread-safe. */
    static final class BrokerFiles implements CursorScan.Files {
        private static final String BEGINNINGS = "log-start-offset-checkpoint";

        private final Path folder;
        private final Map<TopicPartition, Path> partitions;
        private final Map<TopicPartition, Long> beginnings;
        private final Map<TopicPartition, PartitionFiles> read = new ConcurrentHashMap<>();

        private BrokerFiles(Path folder, Map<TopicPartition, Path> partitions, Map<TopicPartition, Long> beginnings) {
            this.folder = folder;
            this.partitions = partitions;
            this.beginnings = beginnings;
        }

        /** @throws ArchiveException if there is no such folder */
        static BrokerFiles in(Path folder) {
            Map<TopicPartition, Path> partitions = new HashMap<>();
            try (Stream<Path> entries = Files.list(folder)) {
                entries.filter(Files::isDirectory).forEach(entry -> {
                    String name = entry.getFileName().toString();
                    int at = name.lastIndexOf('-');
                    // one that is being deleted has a suffix
                    if (at > 0 && name.substring(at + 1).matches("\\d{1,9}")) {
                        partitions.put(
                                new TopicPartition(name.substring(0, at), Integer.parseInt(name.substring(at + 1))),
                                entry);
                    }
                });
                return new BrokerFiles(folder, partitions, beginnings(folder.resolve(BEGINNINGS)));
            } catch (IOException e) {
                throw new ArchiveException(
                        "there are no files of a broker in " + folder + " (" + e.getMessage() + ")", e);
            }
        }

        /** Lines of topic, partition and offset, after one with the format version and one with the count. */
        private static Map<TopicPartition, Long> beginnings(Path file) throws IOException {
            Map<TopicPartition, Long> beginnings = new HashMap<>();
            if (Files.exists(file)) {
                Files.readAllLines(file).stream()
                        .map(line -> line.split(" ", -1))
                        .filter(fields -> fields.length == 3)
                        .forEach(fields -> beginnings.put(
                                new TopicPartition(fields[0], Integer.parseInt(fields[1])), Long.valueOf(fields[2])));
            }
            return beginnings;
        }

        Set<String> topics() {
            return partitions.keySet().stream().map(TopicPartition::topic).collect(Collectors.toSet());
        }

        @Override
        public List<TopicPartition> partitions(String topic) {
            return partitions.keySet().stream()
                    .filter(partition -> partition.topic().equals(topic))
                    .sorted(Comparator.comparingInt(TopicPartition::partition))
                    .toList();
        }

        @Override
        public RecordedRun.Range range(TopicPartition partition) {
            return of(partition).range();
        }

        @Override
        public long since(TopicPartition partition, long timestampMs) {
            return of(partition).since(timestampMs).orElse(range(partition).end());
        }

        @Override
        public FilesCursor read(TopicPartition partition, long from) {
            return new FilesCursor(partition, of(partition), from);
        }

        /** Opens a partition; its batch headers are read at first use. */
        PartitionFiles of(TopicPartition partition) {
            return read.computeIfAbsent(partition, unread -> {
                Path path = partitions.get(unread);
                if (path == null) {
                    throw new ArchiveException("the broker's files in " + folder + " have no " + unread);
                }
                return new PartitionFiles(path, beginnings.getOrDefault(unread, 0L));
            });
        }

        int partitionsRead() {
            return read.size();
        }
    }

    /** Reads committed records of a partition's files, from an offset to their end. */
    static final class FilesCursor implements SeekingCursor {
        private final TopicPartition partition;
        private final PartitionFiles files;
        private long from;
        private int segment;
        private Segment.@Nullable Batches batches;
        private @Nullable FileChannelRecordBatch batch;
        private final BufferSupplier buffers = BufferSupplier.create();
        private CloseableIterator<Record> records = CloseableIterator.wrap(Collections.emptyIterator());

        FilesCursor(TopicPartition partition, PartitionFiles files, long from) {
            this.partition = partition;
            this.files = files;
            seek(from);
        }

        @Override
        public void seek(long offset) {
            close();
            from = Math.max(offset, files.range().from());
            PartitionFiles.Place place = files.before(from);
            segment = place.segment();
            if (segment < files.segments().size()) {
                batches = files.segments().get(segment).open(place.position());
            }
        }

        @Override
        public Optional<ConsumerRecord<byte[], byte[]>> next() {
            while (true) {
                while (records.hasNext()) {
                    Record record = records.next();
                    if (record.offset() >= files.range().end()) {
                        return Optional.empty();
                    }
                    if (record.offset() >= from) {
                        return Optional.of(consumed(record));
                    }
                }
                if (!nextBatch()) {
                    return Optional.empty();
                }
            }
        }

        private boolean nextBatch() {
            while (batches != null) {
                if (!batches.hasNext()) {
                    batches.close();
                    segment++;
                    batches = segment < files.segments().size()
                            ? files.segments().get(segment).open(0)
                            : null;
                    continue;
                }
                FileChannelRecordBatch read = batches.next();
                if (read.baseOffset() >= files.range().end()) {
                    return false;
                }
                if (read.lastOffset() >= from && files.isCommitted(read)) {
                    batch = read;
                    records.close();
                    records = read.streamingIterator(buffers);
                    return true;
                }
            }
            return false;
        }

        private ConsumerRecord<byte[], byte[]> consumed(Record record) {
            FileChannelRecordBatch of = Objects.requireNonNull(batch);
            byte[] key = Utils.toNullableArray(record.key());
            byte[] value = Utils.toNullableArray(record.value());
            return new ConsumerRecord<>(
                    partition.topic(),
                    partition.partition(),
                    record.offset(),
                    record.timestamp(),
                    of.timestampType(),
                    key == null ? ConsumerRecord.NULL_SIZE : key.length,
                    value == null ? ConsumerRecord.NULL_SIZE : value.length,
                    key,
                    value,
                    new RecordHeaders(record.headers()),
                    Optional.of(of.partitionLeaderEpoch()));
        }

        @Override
        public void close() {
            records.close();
            records = CloseableIterator.wrap(Collections.emptyIterator());
            if (batches != null) {
                batches.close();
                batches = null;
            }
        }
    }
}
