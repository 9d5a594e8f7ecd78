package dev.millrace.weights;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * Reads the chunks of a version from where its manifest says they lie: assign, seek, poll to the last offset.
 *
 * <p>One consumer serves all reads, so they take turns. {@link #close()} may be called from any thread and ends a read
 * under way with a {@link org.apache.kafka.common.errors.WakeupException}.
 */
final class ChunkReader implements ChunkLog, AutoCloseable {
    /** Between looks, while no chunk comes, at whether there is one to wait for. */
    private static final Duration LOOK = Duration.ofSeconds(2);

    private final LogConnection connection;
    private final LogReader log;
    private final Duration limit;

    /** @param limit longest wait without a new chunk of a version, while the log has it or cannot be asked */
    ChunkReader(LogConnection connection, Duration limit) {
        this.connection = connection;
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

    /** First offset of a location's partition that is still there. */
    synchronized long begin(TensorLocation location) {
        return log.begin(new TopicPartition(location.getTopic(), location.getPartition()), limit);
    }

    /** @throws VersionUnavailableException if chunks are not on the log, or do not arrive within the limit */
    @Override
    public synchronized void read(PolicyVersion manifest, TensorLocation location, Taker taker) {
        TopicPartition partition = new TopicPartition(location.getTopic(), location.getPartition());
        log.from(partition, location.getFirstOffset());
        try {
            long since = System.nanoTime();
            long before = location.getFirstOffset();
            while (!readOn(partition, location, taker)) {
                requireOnLog(manifest, location, partition);
                if (log.position(partition) > before) {
                    before = log.position(partition);
                    since = System.nanoTime();
                } else if (System.nanoTime() - since >= limit.toNanos()) {
                    throw new VersionUnavailableException(
                            manifest.getVersion(),
                            "version " + manifest.getVersion()
                                    + ": no record came from " + partition + " at offset " + log.position(partition)
                                    + " within " + limit.toMillis()
                                    + " ms; its chunks go on to offset " + location.getLastOffset());
                }
            }
        } catch (OffsetOutOfRangeException e) {
            requireOnLog(manifest, location, partition);
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

    /** False if nothing came for a while. */
    private boolean readOn(TopicPartition partition, TensorLocation location, Taker taker) {
        Duration wait = LOOK.compareTo(limit) < 0 ? LOOK : limit;
        return log.readTo(Map.of(partition, location.getLastOffset() + 1), ReadLimit.withoutProgress(wait), record -> {
            if (record.offset() <= location.getLastOffset()) {
                taker.take(record.topic(), record.partition(), record.offset(), record.value());
            }
        });
    }

    /**
     * Chunks are written before the manifest that names them, so what lies behind the end of the log does not come any more. The
     * end is that of everything written: behind the last commit there may be a mark that is on its way.
     */
    private void requireOnLog(PolicyVersion manifest, TensorLocation location, TopicPartition partition) {
        long end;
        try (LogReader written = new LogReader(connection, Map.of("isolation.level", "read_uncommitted"))) {
            end = written.end(partition, LOOK);
        } catch (TimeoutException away) {
            return;
        }
        if (end <= location.getLastOffset()) {
            throw new VersionUnavailableException(
                    manifest.getVersion(),
                    "version " + manifest.getVersion() + " is lost: its chunks go on to offset "
                            + location.getLastOffset() + " of " + partition + ", and the log ends at offset " + end);
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
