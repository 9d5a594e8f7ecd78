package dev.millrace.replay.archive;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.schemas.run.RunSchemas;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.avro.Schema;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Imports an archive into a cluster at the original offsets, so references between records hold. The topics must
 * exist, be empty and have the same partition counts. Only schema ids are adapted.
 */
public final class RunImport {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final long MOST_WITHOUT = 1_000_000_000;

    private final ArchivedRun archive;
    private final LogConnection connection;
    private volatile long passed;

    /**
     * @param connection may have another topic prefix; its registry may write
     * @throws ArchiveException if the connection is of another run
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

    public long passed() {
        return passed;
    }

    public long toPass() {
        return archive.partitions().stream()
                .mapToLong(partition -> archive.range(partition).end())
                .sum();
    }

    /** @throws ArchiveException if topics are not empty, or a record lands on another offset */
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

    /** Offsets without a record must be reproducible. */
    private void requireFillable() {
        long without = toPass() - archive.records();
        if (without > MOST_WITHOUT) {
            throw new ArchiveException(
                    "the archive has " + without + " offsets without a record, and more than " + MOST_WITHOUT
                            + " cannot be recreated in reasonable time; export a newer run, or replay the archive itself");
        }
    }

    /** Reads end offsets including uncommitted records. */
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
                        + "; records keep their offsets only on topics without earlier writes");
            }
        });
    }

    /** Cluster's schema id by the archive's. */
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
                    "the placeholders at the beginning of " + deletable + " could not be deleted: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    e);
        }
    }

    /**
     * Imports one partition at its original offsets.
     *
     * <p>Offsets without a committed record (markers, aborted and compacted records) are reproduced:
     *
     * <pre>
     *   one offset without a record behind a record    the record is sent in a transaction, whose marker takes the offset
     *   n &gt; 1 offsets without a record                 an aborted transaction of n - 1 empty records, whose marker is the last
     *   the first offset alone without a record        a tombstone without a name; the caller deletes it
     * </pre>
     *
     * <p>The caller runs transactions for many partitions at once: {@link #sendRecords}, then {@link #sendLast} or
     * {@link #fill} within a transaction, repeated after its marker until {@link #isDone}. Every assigned offset is
     * checked. Confined to one thread.
     */
    static final class PartitionImport implements AutoCloseable {
        /** Least request to {@link #fill}: fewer might leave a single offset. */
        static final long LEAST_FILLING = 3;

        private static final byte[] NOTHING = new byte[0];
        private static final int IN_FLIGHT = 5000;
        private static final int FRAME_BYTES = 5;

        private final TopicPartition partition;
        private final RecordCursor cursor;
        private final long end;
        private final Map<Integer, Integer> schemaIds;
        private final boolean isTombstoned;
        private final Deque<Sent> inFlight = new ArrayDeque<>();
        private Optional<ConsumerRecord<byte[], byte[]>> head;
        /** Sent in a transaction whose marker takes the next offset. */
        private Optional<ConsumerRecord<byte[], byte[]>> last = Optional.empty();
        /** Remaining offsets without a record. */
        private long without;

        private long next;

        private record Sent(Future<RecordMetadata> at, long due) {}

        /**
         * @param cursor closed with this
         * @param end behind the last
         * @param schemaIds cluster's id by the archive's
         */
        PartitionImport(TopicPartition partition, RecordCursor cursor, long end, Map<Integer, Integer> schemaIds) {
            this.partition = partition;
            this.cursor = cursor;
            this.end = end;
            this.schemaIds = schemaIds;
            this.head = cursor.next();
            this.without = head.map(ConsumerRecord::offset).orElse(end);
            this.isTombstoned = without == 1;
        }

        TopicPartition partition() {
            return partition;
        }

        /** True if it begins with a tombstone to delete. */
        boolean isTombstoned() {
            return isTombstoned;
        }

        /** Behind everything sent, markers included. */
        long next() {
            return next;
        }

        /** True once everything is sent. */
        boolean isDone() {
            return head.isEmpty() && last.isEmpty() && without == 0;
        }

        /** Sends records up to the next offset without one, outside transactions. */
        void sendRecords(Producer<byte[], byte[]> producer) {
            if (isTombstoned && next == 0) {
                send(producer, new ProducerRecord<>(partition.topic(), partition.partition(), NOTHING, null));
                without = 0;
            }
            while (without == 0 && head.isPresent()) {
                ConsumerRecord<byte[], byte[]> here = head.get();
                head = cursor.next();
                without = head.map(ConsumerRecord::offset).orElse(end) - here.offset() - 1;
                if (without == 1) {
                    last = Optional.of(here);
                } else {
                    send(producer, restored(here));
                }
            }
        }

        boolean hasLast() {
            return last.isPresent();
        }

        void sendLast(Producer<byte[], byte[]> transactional) {
            send(transactional, restored(last.orElseThrow()));
            last = Optional.empty();
            without = 0;
            next++;
        }

        boolean isToFill() {
            return last.isEmpty() && without > 1;
        }

        /**
         * Sends empty records; the marker takes the last offset.
         *
         * @param most at least {@link #LEAST_FILLING}; the remainder is never a single offset
         * @return offsets filled
         */
        long fill(Producer<byte[], byte[]> transactional, long most) {
            long now = without - most == 1 ? most - 1 : Math.min(without, most);
            for (long i = 0; i < now - 1; i++) {
                send(transactional, new ProducerRecord<>(partition.topic(), partition.partition(), NOTHING, NOTHING));
            }
            next++;
            without -= now;
            return now;
        }

        private ProducerRecord<byte[], byte[]> restored(ConsumerRecord<byte[], byte[]> record) {
            return new ProducerRecord<>(
                    partition.topic(),
                    partition.partition(),
                    record.timestamp(),
                    record.key(),
                    withOurIds(record.value()),
                    record.headers());
        }

        private void send(Producer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record) {
            inFlight.add(new Sent(producer.send(record), next++));
            settle(IN_FLIGHT);
        }

        /** Checks all assigned offsets; call after flushing the producers. */
        void settle() {
            settle(0);
        }

        private void settle(int left) {
            while (inFlight.size() > left) {
                Sent sent = inFlight.remove();
                try {
                    long offset = sent.at().get().offset();
                    if (offset != sent.due()) {
                        throw new ArchiveException(
                                "the record of " + partition + "@" + sent.due() + " was written at offset " + offset
                                        + "; another process writes to the topic, so delete the run's topics and"
                                        + " import again");
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    throw new KafkaException("the import was interrupted", e);
                } catch (ExecutionException e) {
                    Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
                    throw new ArchiveException(
                            "the broker did not accept the record of " + partition + "@" + sent.due() + ": "
                                    + cause.getMessage(),
                            cause);
                }
            }
        }

        private byte[] withOurIds(byte[] value) {
            if (value == null || value.length < FRAME_BYTES || value[0] != 0) {
                return value;
            }
            int id = ByteBuffer.wrap(value).getInt(1);
            int ours = schemaIds.getOrDefault(id, id);
            if (ours == id) {
                return value;
            }
            byte[] changed = value.clone();
            ByteBuffer.wrap(changed).putInt(1, ours);
            return changed;
        }

        @Override
        public void close() {
            cursor.close();
        }
    }
}
