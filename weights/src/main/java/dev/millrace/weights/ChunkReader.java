package dev.millrace.weights;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads the chunks of a version from where its manifest says they lie: assign, seek, poll to the last offset.
 *
 * <p>One consumer serves all reads, so they take turns. {@link #close()} may be called from any thread and ends a read
 * under way with a {@link org.apache.kafka.common.errors.WakeupException}.
 */
final class ChunkReader implements ChunkLog, AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(200);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Duration limit;

    /** @param limit longest wait without a new chunk of a version */
    ChunkReader(LogConnection connection, Duration limit) {
        this.consumer = new KafkaConsumer<>(
                connection.consumer(Map.of(
                        "isolation.level",
                        "read_committed",
                        "auto.offset.reset",
                        "none",
                        "enable.auto.commit",
                        false,
                        // after a version's last chunk the consumer asks for more; the next read begins when that has
                        // come back
                        "fetch.max.wait.ms",
                        10,
                        "max.partition.fetch.bytes",
                        8 << 20)),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
        this.limit = limit;
    }

    /** @throws VersionUnavailableException if chunks are no longer on the log, or do not arrive within the limit */
    @Override
    public synchronized void read(PolicyVersion manifest, TensorLocation location, Taker taker) {
        TopicPartition partition = new TopicPartition(location.getTopic(), location.getPartition());
        consumer.assign(List.of(partition));
        consumer.seek(partition, location.getFirstOffset());
        long position = location.getFirstOffset();
        long lastProgress = System.nanoTime();
        while (position <= location.getLastOffset()) {
            for (ConsumerRecord<byte[], byte[]> record : poll(manifest, location)) {
                if (record.offset() <= location.getLastOffset()) {
                    taker.take(record.topic(), record.partition(), record.offset(), record.value());
                }
            }
            long now = consumer.position(partition);
            if (now > position) {
                position = now;
                lastProgress = System.nanoTime();
            } else if (System.nanoTime() - lastProgress > limit.toNanos()) {
                throw new VersionUnavailableException(
                        manifest.getVersion(),
                        "version " + manifest.getVersion()
                                + ": no record came from " + partition + " at offset " + position + " within "
                                + limit.toMillis()
                                + " ms; its chunks go on to offset " + location.getLastOffset());
            }
        }
    }

    private Iterable<ConsumerRecord<byte[], byte[]>> poll(PolicyVersion manifest, TensorLocation location) {
        try {
            return consumer.poll(POLL);
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
        consumer.wakeup();
        synchronized (this) {
            consumer.close(
                    CloseOptions.timeout(Duration.ZERO)); // in no group: only a fetch under way would be waited for
        }
    }
}
