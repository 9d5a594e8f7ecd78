package dev.millrace.replay.archive;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.schemas.run.RunSchemas;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.avro.Schema;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Puts an archive back on a cluster, every record at the offset that it had, so that batches find their trajectories
 * and trajectories their rollouts.
 *
 * <p>The run's topics must be there and empty, with the archive's numbers of partitions. Where the cluster knows a schema
 * under another id, the id in the records is changed and nothing else.
 */
public final class RunImport {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final long MOST_WITHOUT = 1_000_000_000;

    private final ArchivedRun archive;
    private final LogConnection connection;
    private volatile long passed;

    /**
     * @param connection to the run's topics, which may have another prefix than they had; its registry may write
     * @throws ArchiveException if the connection is of another run than the archive
     */
    public RunImport(ArchivedRun archive, LogConnection connection) {
        if (!archive.run().equals(connection.run())) {
            throw new ArchiveException("the archive is of " + archive.run() + ", the topics under "
                    + connection.topics().prefix() + " are of " + connection.run());
        }
        if (!archive.topics().equals(connection.topics())) {
            throw new ArchiveException("the run's records name its topics, whose names begin with '"
                    + archive.topics().prefix() + "'; import it under that prefix, not under '"
                    + connection.topics().prefix() + "'");
        }
        this.archive = archive;
        this.connection = connection;
    }

    /** Offsets that were passed so far; from any thread. */
    public long passed() {
        return passed;
    }

    /** Offsets to pass. */
    public long toPass() {
        return archive.partitions().stream()
                .mapToLong(partition -> archive.range(partition).end())
                .sum();
    }

    /** @throws ArchiveException if the topics hold something, or a record comes to lie elsewhere */
    public void run() {
        List<TopicPartition> partitions = archive.partitions();
        requireFillable();
        try (LogReader log = ends()) {
            requireEmpty(partitions, log.consumer());
        }
        Map<Integer, Integer> schemaIds = schemaIds();
        List<TopicPartition> tombstoned = new ArrayList<>();
        try (ImportRounds rounds = new ImportRounds(connection, ends())) {
            rounds.write(
                    partitions,
                    partition -> new PartitionImport(
                            partition,
                            archive.read(partition, archive.range(partition).from()),
                            archive.range(partition).end(),
                            schemaIds),
                    tombstoned::add,
                    now -> passed = now);
        }
        deleteFirst(tombstoned);
    }

    /** Offsets without a record are made again one by one. */
    private void requireFillable() {
        long without = toPass() - archive.records();
        if (without > MOST_WITHOUT) {
            throw new ArchiveException(
                    "the archive has " + without + " offsets without a record, and more than " + MOST_WITHOUT
                            + " cannot be made again in reasonable time; export a younger run, or replay the archive as it is");
        }
    }

    /** Returns a reader of the partitions' end offsets that includes uncommitted records. */
    private LogReader ends() {
        return new LogReader(
                connection.as("import"), Map.of(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_uncommitted"));
    }

    private static void requireEmpty(List<TopicPartition> partitions, Consumer<byte[], byte[]> consumer) {
        for (String topic :
                new TreeSet<>(partitions.stream().map(TopicPartition::topic).toList())) {
            List<PartitionInfo> there = consumer.partitionsFor(topic, PATIENCE);
            long needed = partitions.stream()
                    .filter(partition -> partition.topic().equals(topic))
                    .count();
            if (there.size() != needed) {
                throw new ArchiveException(
                        "topic " + topic + " has " + there.size() + " partitions, the archive has " + needed);
            }
        }
        consumer.endOffsets(partitions, PATIENCE).forEach((partition, end) -> {
            if (end != 0) {
                throw new ArchiveException(partition + " is not empty: it ends at offset " + end
                        + "; records can get their offsets back only on topics that nothing was written to");
            }
        });
    }

    /** Ours for each of the archive's. */
    private Map<Integer, Integer> schemaIds() {
        Map<String, String> subjects = new HashMap<>();
        RunSchemas.bySubject(connection.topics())
                .forEach((subject, schema) -> subjects.putIfAbsent(schema.getFullName(), subject));
        Map<Integer, Integer> ids = new HashMap<>();
        archive.schemas().forEach((id, text) -> {
            Schema schema = new Schema.Parser().parse(text);
            String subject = subjects.getOrDefault(schema.getFullName(), schema.getFullName());
            ids.put(id, connection.registry().idOf(subject, schema));
        });
        return ids;
    }

    private void deleteFirst(List<TopicPartition> partitions) {
        List<TopicPartition> deletable = partitions.stream()
                .filter(partition ->
                        !partition.topic().equals(connection.topics().policyVersions())
                                && !partition.topic().equals(connection.topics().serving()))
                .toList(); // the broker deletes nothing from compacted topics
        if (deletable.isEmpty()) {
            return;
        }
        Map<TopicPartition, RecordsToDelete> upTo = new HashMap<>();
        deletable.forEach(partition -> upTo.put(partition, RecordsToDelete.beforeOffset(1)));
        try (Admin admin = Admin.create(connection.as("import").admin())) {
            admin.deleteRecords(upTo).all().get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ArchiveException("the import was interrupted", e);
        } catch (ExecutionException e) {
            throw new ArchiveException(
                    "the filling at the beginning of " + deletable + " could not be deleted: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    e);
        }
    }
}
