package dev.millrace.topology.task;

import dev.millrace.log.Alarms;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says aloud what the log does to its readers without a word: alarm {@value #OPEN} where a transaction is left open and holds
 * back all that is written behind it, and {@value #REMOVED} where retention has taken records that were not read.
 *
 * <p>What was removed stays an alarm for as long as the process lives, since it does not come back. Confined to one thread.
 */
public final class LogStalls implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LogStalls.class);
    private static final String OPEN = "open-transaction";
    private static final String REMOVED = "records-removed";

    /** Where what can be read has ended for how long. */
    private record Stable(long offset, long sinceMs) {}

    private final Consumer<byte[], byte[]> committed;
    private final Consumer<byte[], byte[]> written;
    private final Set<String> topics;
    private final long afterMs;
    private final Alarms alarms;
    private final String abort;
    private final String repair;
    private final Map<TopicPartition, Stable> stable = new HashMap<>();

    /**
     * @param committed reads committed records, and the offsets of the watched group; closed with this
     * @param written reads uncommitted records too; closed with this
     * @param topics the watched topics
     * @param afterMs how long a transaction may hold others back
     * @param abort the command that ends a transaction
     * @param repair the command that reports losses
     */
    public LogStalls(
            Consumer<byte[], byte[]> committed,
            Consumer<byte[], byte[]> written,
            Set<String> topics,
            long afterMs,
            Alarms alarms,
            String abort,
            String repair) {
        this.committed = committed;
        this.written = written;
        this.topics = topics;
        this.afterMs = afterMs;
        this.alarms = alarms;
        this.abort = abort;
        this.repair = repair;
    }

    /** Looks; a log that does not answer is looked at the next time. */
    public void check(long nowMs) {
        try {
            for (String topic : topics) {
                List<PartitionInfo> found = committed.partitionsFor(topic);
                if (found == null) {
                    continue; // deleted, which the readers say themselves
                }
                List<TopicPartition> partitions = found.stream()
                        .map(info -> new TopicPartition(topic, info.partition()))
                        .toList();
                checkRemoved(partitions);
                checkOpen(partitions, nowMs);
            }
        } catch (KafkaException e) {
            LOG.debug("cannot look for the cause of the stalled log now", e);
        }
    }

    private void checkRemoved(List<TopicPartition> partitions) {
        Map<TopicPartition, Long> begins = written.beginningOffsets(partitions);
        committed.committed(Set.copyOf(partitions)).forEach((partition, next) -> {
            long begin = begins.getOrDefault(partition, 0L);
            if (next != null && next.offset() < begin) {
                alarms.raise(
                        REMOVED,
                        partition.toString(),
                        "retention has removed offsets " + next.offset() + " to " + (begin - 1)
                                + " before the topology read them; records that wait for these wait until their deadline",
                        repair);
            }
        });
    }

    private void checkOpen(List<TopicPartition> partitions, long nowMs) {
        Map<TopicPartition, Long> readable = committed.endOffsets(partitions);
        Map<TopicPartition, Long> ends = written.endOffsets(partitions);
        for (TopicPartition partition : partitions) {
            long last = readable.getOrDefault(partition, 0L);
            long end = ends.getOrDefault(partition, 0L);
            Stable before = stable.get(partition);
            if (end <= last || before == null || before.offset() != last) {
                stable.put(partition, new Stable(last, nowMs));
                alarms.lower(OPEN, partition.toString());
            } else if (nowMs - before.sinceMs() >= afterMs) {
                alarms.raise(
                        OPEN,
                        partition.toString(),
                        "a transaction that began at offset " + last + " has been open for "
                                + (nowMs - before.sinceMs()) / 1000 + " s, and read_committed consumers do not see"
                                + " the records after it, up to offset " + end
                                + ", until it ends",
                        abort);
            }
        }
    }

    @Override
    public void close() {
        committed.close();
        written.close();
    }
}
