package dev.millrace.log.fetch;

import dev.millrace.log.LogConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads records again with a consumer of its own that belongs to no group.
 *
 * <p>The consumer is made at the first fetch, so a topology that never has to look back never opens it.
 */
public final class KafkaRecordFetcher implements RecordFetcher {
    private static final Duration POLL = Duration.ofMillis(200);
    /** Reading over so many records in between is cheaper than throwing away what was fetched and asking anew. */
    private static final long SEEK_OVER = 200;

    /** What is asked for is there. Behind it the consumer asks for more, and the next fetch waits for that answer. */
    private static final int WAIT_MS = 10;

    private final LogConnection connection;
    private final Duration patience;
    private KafkaConsumer<byte[], byte[]> consumer;

    /** @param patience how long a fetch may go without a record */
    public KafkaRecordFetcher(LogConnection connection, Duration patience) {
        this.connection = connection;
        this.patience = patience;
    }

    @Override
    public List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets) {
        KafkaConsumer<byte[], byte[]> reader = consumer();
        reader.assign(List.of(partition));
        long kept = reader.beginningOffsets(List.of(partition), patience).get(partition);
        long end = reader.endOffsets(List.of(partition), patience).get(partition);
        int next = 0;
        while (next < offsets.length && offsets[next] < kept) {
            next++;
        }
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>(offsets.length - next);
        long position = Long.MIN_VALUE;
        long lastProgress = System.nanoTime();
        while (next < offsets.length && offsets[next] < end) {
            if (position == Long.MIN_VALUE || offsets[next] - position > SEEK_OVER) {
                reader.seek(partition, offsets[next]);
            }
            for (ConsumerRecord<byte[], byte[]> record : reader.poll(POLL).records(partition)) {
                while (next < offsets.length && offsets[next] < record.offset()) {
                    next++;
                }
                if (next < offsets.length && offsets[next] == record.offset()) {
                    found.add(record);
                    next++;
                }
            }
            long reached = reader.position(partition, patience);
            while (next < offsets.length && offsets[next] < reached) {
                next++; // a marker of a transaction, or compacted away: nothing is at this offset any more
            }
            if (reached != position) {
                position = reached;
                lastProgress = System.nanoTime();
            } else if (System.nanoTime() - lastProgress > patience.toNanos()) {
                throw new RecordFetchException(
                        "nothing came from " + partition + " at offset " + offsets[next] + " for "
                                + patience.toSeconds() + " s; is the broker out of reach, or a transaction left open?");
            }
        }
        return found;
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        if (consumer == null) {
            consumer = new KafkaConsumer<>(
                    connection.consumer(Map.of(
                            ConsumerConfig.ISOLATION_LEVEL_CONFIG,
                            "read_committed",
                            ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG,
                            false,
                            ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG,
                            WAIT_MS,
                            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG,
                            "earliest")),
                    new ByteArrayDeserializer(),
                    new ByteArrayDeserializer());
        }
        return consumer;
    }

    @Override
    public void close() {
        if (consumer != null) {
            consumer.close();
            consumer = null;
        }
    }
}
