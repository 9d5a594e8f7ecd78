package dev.millrace.weights;

import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.log.follow.ReadLimit;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads the chunks of a version from where its manifest says they lie: assign, seek, poll to the last offset.
 *
 * <p>One consumer serves all reads, so they take turns. {@link #close()} may be called from any thread and ends a read
 * under way with a {@link org.apache.kafka.common.errors.WakeupException}.
 */
final class ChunkReader implements ChunkLog, AutoCloseable {
    private final LogReader log;
    private final Duration limit;

    /** @param limit longest wait without a new chunk of a version */
    ChunkReader(LogConnection connection, Duration limit) {
        this.log = new LogReader(
                connection,
                Map.of(
                        "auto.offset.reset",
                        "none",
                        // after a version's last chunk the consumer asks for more; the next read begins when that has
                        // come back
                        "fetch.max.wait.ms",
                        10,
                        "max.partition.fetch.bytes",
                        8 << 20));
        this.limit = limit;
    }

    /** @throws VersionUnavailableException if chunks are no longer on the log, or do not arrive within the limit */
    @Override
    public synchronized void read(PolicyVersion manifest, TensorLocation location, Taker taker) {
        TopicPartition partition = new TopicPartition(location.getTopic(), location.getPartition());
        log.from(partition, location.getFirstOffset());
        try {
            boolean isRead = log.readTo(
                    Map.of(partition, location.getLastOffset() + 1), ReadLimit.withoutProgress(limit), record -> {
                        if (record.offset() <= location.getLastOffset()) {
                            taker.take(record.topic(), record.partition(), record.offset(), record.value());
                        }
                    });
            if (!isRead) {
                throw new VersionUnavailableException(
                        manifest.getVersion(),
                        "version " + manifest.getVersion()
                                + ": no record came from " + partition + " at offset " + log.position(partition)
                                + " within " + limit.toMillis()
                                + " ms; its chunks go on to offset " + location.getLastOffset());
            }
        } catch (OffsetOutOfRangeException e) {
            throw new VersionUnavailableException(
                    manifest.getVersion(),
                    "version " + manifest.getVersion()
                            + " is no longer kept: its chunks lay on " + location.getTopic() + "-"
                            + location.getPartition()
                            + " from offset " + location.getFirstOffset()
                            + ", and the log there now begins later (a larger retention of that topic keeps versions longer)",
                    e);
        }
    }

    @Override
    public void close() {
        log.wakeup();
        synchronized (this) {
            log.close();
        }
    }
}
