package dev.millrace.replay.archive;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.replay.archive.RunImport.PartitionImport;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.stream.Collectors;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Imports many partitions in rounds: each writes every partition's records up to its next offset without a record,
 * then one committed and one aborted transaction for these offsets of all partitions. The number of rounds, the
 * largest number of such offsets in a partition, determines the time. Confined to one thread.
 */
final class ImportRounds implements AutoCloseable {
    /** In rotation: a producer's next transaction waits for its last one's markers. */
    private static final int TRANSACTIONAL_PRODUCERS = 4;
    /** Each holds a block of its file, about 2 MiB. */
    private static final int PARTITIONS_AT_ONCE = 64;
    /** Keeps a transaction below the broker's timeout. */
    private static final long FILLING_OF_ONE_TRANSACTION = 100_000;

    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final long POLL_NANOS = 500_000;

    private final LogReader ends;
    private final List<Producer<byte[], byte[]>> producers = new ArrayList<>();
    private final Producer<byte[], byte[]> plain;
    private int turns;

    /** @param ends reads uncommitted end offsets; closed with this */
    ImportRounds(LogConnection connection, LogReader ends) {
        this.ends = ends;
        try {
            for (int i = 0; i < TRANSACTIONAL_PRODUCERS; i++) {
                producers.add(producer(
                        connection, Map.of(ProducerConfig.TRANSACTIONAL_ID_CONFIG, connection.scoped("import-" + i))));
                producers.get(i).initTransactions();
            }
            plain = producer(connection, Map.of());
            producers.add(plain);
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    private static Producer<byte[], byte[]> producer(LogConnection connection, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(connection.producer(Map.of(
                ProducerConfig.ACKS_CONFIG,
                "all",
                ProducerConfig.LINGER_MS_CONFIG,
                0,
                ProducerConfig.BATCH_SIZE_CONFIG,
                256 << 10,
                ProducerConfig.COMPRESSION_TYPE_CONFIG,
                "lz4")));
        settings.putAll(more);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /**
     * @param begin opens a partition; closed here
     * @param tombstoned receives partitions that begin with a tombstone
     * @param passed receives offsets written
     */
    void write(
            List<TopicPartition> partitions,
            Function<TopicPartition, PartitionImport> begin,
            Consumer<TopicPartition> tombstoned,
            LongConsumer passed) {
        Iterator<TopicPartition> waiting = partitions.iterator();
        List<PartitionImport> open = new ArrayList<>();
        long done = 0;
        try {
            while (waiting.hasNext() || !open.isEmpty()) {
                while (waiting.hasNext() && open.size() < PARTITIONS_AT_ONCE) {
                    open.add(begin.apply(waiting.next()));
                }
                open.forEach(partition -> partition.sendRecords(plain));
                plain.flush();
                open.forEach(PartitionImport::settle);
                commitLast(open.stream().filter(PartitionImport::hasLast).toList());
                fill(open.stream().filter(PartitionImport::isToFill).toList());
                for (PartitionImport partition :
                        open.stream().filter(PartitionImport::isDone).toList()) {
                    if (partition.isTombstoned()) {
                        tombstoned.accept(partition.partition());
                    }
                    done += partition.next();
                    open.remove(partition);
                    partition.close();
                }
                passed.accept(
                        done + open.stream().mapToLong(PartitionImport::next).sum());
            }
        } finally {
            open.forEach(PartitionImport::close);
        }
    }

    private void commitLast(List<PartitionImport> due) {
        if (due.isEmpty()) {
            return;
        }
        Producer<byte[], byte[]> producer = nextProducer();
        producer.beginTransaction();
        due.forEach(partition -> partition.sendLast(producer));
        producer.flush();
        due.forEach(PartitionImport::settle);
        producer.commitTransaction();
        awaitMarkers(due);
    }

    private void fill(List<PartitionImport> due) {
        if (due.isEmpty()) {
            return;
        }
        Producer<byte[], byte[]> producer = nextProducer();
        producer.beginTransaction();
        List<PartitionImport> filled = new ArrayList<>();
        long left = FILLING_OF_ONE_TRANSACTION;
        for (PartitionImport partition : due) {
            if (left >= PartitionImport.LEAST_FILLING) { // the others follow in the next round
                left -= partition.fill(producer, left);
                filled.add(partition);
            }
        }
        producer.flush();
        filled.forEach(PartitionImport::settle);
        producer.abortTransaction();
        awaitMarkers(filled);
    }

    private Producer<byte[], byte[]> nextProducer() {
        return producers.get(turns++ % TRANSACTIONAL_PRODUCERS);
    }

    private void awaitMarkers(List<PartitionImport> of) {
        Map<TopicPartition, Long> due =
                of.stream().collect(Collectors.toMap(PartitionImport::partition, PartitionImport::next));
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (true) {
            ends.consumer().endOffsets(List.copyOf(due.keySet()), PATIENCE).forEach((partition, end) -> {
                if (end > Objects.requireNonNull(due.get(partition))) {
                    throw new ArchiveException(
                            partition + " ends at offset " + end + " instead of " + due.get(partition)
                                    + "; another process writes to the topic, so delete the run's topics and import again");
                }
                due.remove(partition, end);
            });
            if (due.isEmpty()) {
                return;
            }
            if (System.nanoTime() - deadline > 0) {
                Map.Entry<TopicPartition, Long> missing =
                        due.entrySet().iterator().next();
                throw new ArchiveException("the marker of a transaction on " + missing.getKey() + "@"
                        + (missing.getValue() - 1) + " was not written within " + PATIENCE.toSeconds()
                        + " s; delete the run's topics and import again");
            }
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    @Override
    public void close() {
        producers.forEach(Producer::close);
        ends.close();
    }
}
