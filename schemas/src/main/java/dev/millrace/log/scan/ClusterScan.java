package dev.millrace.log.scan;

import dev.millrace.log.LogConnection;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads the topics of a cluster without a consumer group, so that it leaves no trace in a live run. Owned by one thread. */
public final class ClusterScan implements TopicScan {
    /** What is read is there already; a request that the broker holds back for more would hold up the next topic. */
    private static final int FETCH_WAIT_MS = 20;

    private final LogConnection connection;
    private final LogReader log;
    private final Duration patience;
    private long records;
    private long bytes;

    /** @param patience how long to wait while nothing arrives */
    public ClusterScan(LogConnection connection, Duration patience) {
        this.connection = connection;
        this.patience = patience;
        this.log = reader("read_committed");
    }

    private LogReader reader(String isolation) {
        return new LogReader(
                connection.as("scan"),
                Map.of(
                        ConsumerConfig.ISOLATION_LEVEL_CONFIG,
                        isolation,
                        ConsumerConfig.MAX_POLL_RECORDS_CONFIG,
                        5000,
                        ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG,
                        FETCH_WAIT_MS,
                        ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG,
                        4 << 20,
                        ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG,
                        Math.toIntExact(patience.toMillis())));
    }

    @Override
    public ConsistentCut cut(List<String> topics) {
        return ConsistentCut.now(log.consumer(), there(topics), patience);
    }

    /**
     * A cut that holds every transaction that is committed now, also one behind another that is open still; reading up to
     * it waits for that one to end.
     */
    public ConsistentCut cutBehindOpenTransactions(List<String> topics) {
        try (LogReader uncommitted = reader("read_uncommitted")) {
            return ConsistentCut.now(uncommitted.consumer(), there(topics), patience);
        }
    }

    /** By a list of all: to ask for one topic that is not there makes it on a cluster that creates topics by itself. */
    private List<String> there(List<String> topics) {
        Set<String> required = Set.copyOf(connection.topics().required());
        if (required.containsAll(topics)) {
            return topics;
        }
        Set<String> known = partitionCounts().keySet();
        return topics.stream()
                .filter(topic -> required.contains(topic) || known.contains(topic))
                .toList();
    }

    /** How many partitions each topic of the run has that the cluster has. */
    public Map<String, Integer> partitionCounts() {
        Map<String, Integer> counts = new HashMap<>();
        log.consumer().listTopics(patience).forEach((topic, partitions) -> {
            if (connection.topics().all().contains(topic)) {
                counts.put(topic, partitions.size());
            }
        });
        return counts;
    }

    @Override
    public Map<TopicPartition, Long> keptFrom(List<TopicPartition> partitions) {
        return log.consumer().beginningOffsets(partitions, patience);
    }

    @Override
    public Map<TopicPartition, Long> since(ConsistentCut cut, List<TopicPartition> partitions, long timestampMs) {
        Map<TopicPartition, Long> times = new HashMap<>();
        partitions.forEach(partition -> times.put(partition, Math.max(0, timestampMs)));
        Map<TopicPartition, Long> from = new HashMap<>();
        log.consumer().offsetsForTimes(times, patience).forEach((partition, found) -> {
            OffsetRange range = cut.of(partition);
            from.put(
                    partition,
                    found == null ? range.end() : Math.min(range.end(), Math.max(range.begin(), found.offset())));
        });
        return from;
    }

    private static long at(Map<TopicPartition, Long> from, TopicPartition partition) {
        return Objects.requireNonNull(from.get(partition), partition::toString);
    }

    @Override
    public void readWhile(
            Map<TopicPartition, Long> from, ConsistentCut cut, Predicate<ConsumerRecord<byte[], byte[]>> reader) {
        Set<TopicPartition> open = new HashSet<>(from.keySet());
        open.removeIf(partition -> at(from, partition) >= cut.of(partition).end());
        if (open.isEmpty()) {
            return;
        }
        log.consumer().assign(List.copyOf(open));
        log.consumer().resume(List.copyOf(open)); // one that was left by the last reading is paused still
        from.forEach((partition, offset) -> {
            if (open.contains(partition)) {
                log.consumer().seek(partition, offset);
            }
        });
        boolean isRead = log.readUntil(() -> isRead(open, cut), ReadLimit.withoutProgress(patience), record -> {
            TopicPartition partition = new TopicPartition(record.topic(), record.partition());
            if (open.contains(partition) && record.offset() < cut.of(partition).end()) {
                records++;
                bytes += Math.max(0, record.serializedKeySize()) + Math.max(0, record.serializedValueSize());
                if (!reader.test(record)) {
                    leave(partition, open);
                }
            }
        });
        if (!isRead) {
            throw new ScanException("no record arrived for " + patience.toSeconds() + " s while reading " + open
                    + "; is the broker out of reach or overloaded, or a transaction left open?");
        }
    }

    private boolean isRead(Set<TopicPartition> open, ConsistentCut cut) {
        for (TopicPartition partition : List.copyOf(open)) {
            if (log.position(partition) >= cut.of(partition).end()) {
                leave(partition, open); // a live run writes on
            }
        }
        return open.isEmpty();
    }

    private void leave(TopicPartition partition, Set<TopicPartition> open) {
        if (open.remove(partition)) {
            log.consumer().pause(List.of(partition));
        }
    }

    @Override
    public long records() {
        return records;
    }

    @Override
    public long bytes() {
        return bytes;
    }

    @Override
    public void close() {
        log.close();
    }
}
