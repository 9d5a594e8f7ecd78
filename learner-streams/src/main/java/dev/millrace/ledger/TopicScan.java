package dev.millrace.ledger;

import dev.millrace.schemas.run.LogConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads topics from their beginning to a cut, as a member of no group, so that it can be done beside a live run and leaves
 * no trace. Owned by one thread.
 */
final class TopicScan implements AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(250);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Duration patience;

    /** @param patience how long to wait while nothing arrives */
    TopicScan(LogConnection connection, Duration patience) {
        this.patience = patience;
        this.consumer = new KafkaConsumer<>(connection.with(Map.of(
            ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed",
            ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
            ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 5000,
            ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 4 << 20,
            ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, Math.toIntExact(patience.toMillis()))),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    Cut cut(List<String> topics) {
        return Cut.now(consumer, topics, patience);
    }

    /** First offset that the log keeps of each partition now. */
    Map<TopicPartition, Long> keptFrom(List<TopicPartition> partitions) {
        return consumer.beginningOffsets(partitions, patience);
    }

    /**
     * Hands over every committed record of a topic inside the cut.
     *
     * @throws LedgerException if nothing arrived for so long before its end was reached
     */
    void read(String topic, Cut cut, Consumer<ConsumerRecord<byte[], byte[]>> reader) {
        List<TopicPartition> partitions = new ArrayList<>(cut.partitions(topic));
        partitions.removeIf(partition -> cut.of(partition).begin() == cut.of(partition).end());
        if (partitions.isEmpty()) {
            return;
        }
        consumer.assign(partitions);
        partitions.forEach(partition -> consumer.seek(partition, cut.of(partition).begin()));
        Set<TopicPartition> open = new HashSet<>(partitions);
        long lastProgress = System.nanoTime();
        while (true) {
            for (TopicPartition partition : List.copyOf(open)) {
                if (consumer.position(partition, patience) >= cut.of(partition).end()) {
                    open.remove(partition);
                    consumer.pause(List.of(partition)); // a live run writes on
                }
            }
            if (open.isEmpty()) {
                return;
            }
            boolean any = false;
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                any = true;
                if (record.offset() < cut.of(new TopicPartition(topic, record.partition())).end()) {
                    reader.accept(record);
                }
            }
            if (any) {
                lastProgress = System.nanoTime();
            } else if (System.nanoTime() - lastProgress > patience.toNanos()) {
                throw new LedgerException("nothing arrived for " + patience.toSeconds() + " s while reading " + open
                    + "; is the broker out of reach, or overloaded?");
            }
        }
    }

    @Override
    public void close() {
        consumer.close();
    }
}
