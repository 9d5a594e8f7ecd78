package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.WeightChunk;
import dev.millrace.schemas.run.LogConnection;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the chunks of a version from where its manifest says they lie: assign, seek, poll to the last offset.
 *
 * <p>One consumer serves all reads, so they take turns. {@link #close()} may be called from any thread and ends a read
 * under way with a {@link org.apache.kafka.common.errors.WakeupException}.
 */
final class ChunkReader implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ChunkReader.class);
    private static final Duration POLL = Duration.ofMillis(200);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Deserializer<WeightChunk> chunks;
    private final Duration limit;

    /** @param limit longest wait without a new chunk of a version */
    ChunkReader(LogConnection connection, Duration limit) {
        this.consumer = new KafkaConsumer<>(
            connection.consumer(Map.of(
                "isolation.level", "read_committed",
                "auto.offset.reset", "none",
                "enable.auto.commit", false,
                // after a version's last chunk the consumer asks for more; the next read begins when that has come back
                "fetch.max.wait.ms", 10,
                "max.partition.fetch.bytes", 8 << 20)),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
        this.chunks = AvroSerde.of(WeightChunk.class, connection.registry()).deserializer();
        this.limit = limit;
    }

    /**
     * What lies at a location, by tensor, in heap buffers that belong to the caller; not verified yet.
     *
     * @throws VersionUnavailableException if chunks are no longer on the log, or do not arrive within the limit
     * @throws CorruptVersionException if chunks are missing or out of place
     */
    synchronized Map<String, ByteBuffer> read(PublishedTensors published) {
        PolicyVersion manifest = published.manifest();
        TensorLocation location = published.location();
        TensorAssembly assembly = new TensorAssembly(published);
        TopicPartition partition = new TopicPartition(location.getTopic(), location.getPartition());
        consumer.assign(List.of(partition));
        consumer.seek(partition, location.getFirstOffset());
        long position = location.getFirstOffset();
        long lastProgress = System.nanoTime();
        while (position <= location.getLastOffset()) {
            for (ConsumerRecord<byte[], byte[]> record : poll(manifest, location)) {
                if (record.offset() <= location.getLastOffset()) {
                    accept(assembly, record);
                }
            }
            long now = consumer.position(partition);
            if (now > position) {
                position = now;
                lastProgress = System.nanoTime();
            } else if (System.nanoTime() - lastProgress > limit.toNanos()) {
                throw new VersionUnavailableException(manifest.getVersion(), "version " + manifest.getVersion()
                    + ": no record came from " + partition + " at offset " + position + " within " + limit.toMillis()
                    + " ms; its chunks go on to offset " + location.getLastOffset());
            }
        }
        return assembly.finish();
    }

    private Iterable<ConsumerRecord<byte[], byte[]>> poll(PolicyVersion manifest, TensorLocation location) {
        try {
            return consumer.poll(POLL);
        } catch (OffsetOutOfRangeException e) {
            throw new VersionUnavailableException(manifest.getVersion(), "version " + manifest.getVersion()
                + " is no longer kept: its chunks lay on " + location.getTopic() + "-" + location.getPartition()
                + " from offset " + location.getFirstOffset()
                + ", and the log there now begins later (a larger retention of that topic keeps versions longer)", e);
        }
    }

    private void accept(TensorAssembly assembly, ConsumerRecord<byte[], byte[]> record) {
        try {
            assembly.accept(chunks.deserialize(record.topic(), record.value()), record.offset());
        } catch (MalformedRecordException e) {
            // whoever wrote this is no learner; if a chunk of ours is missing for it, the assembly names it
            LOG.warn("passed over {}-{}@{}: {}", record.topic(), record.partition(), record.offset(), e.getMessage());
        }
    }

    @Override
    public void close() {
        consumer.wakeup();
        synchronized (this) {
            consumer.close(CloseOptions.timeout(Duration.ZERO)); // in no group: only a fetch under way would be waited for
        }
    }
}
