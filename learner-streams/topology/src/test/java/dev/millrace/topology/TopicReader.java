package dev.millrace.topology;

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
 * Reads the committed records of a topic, each time from the last position on. Waiting tests poll repeatedly, and a new
 * consumer for each poll would take CPU time from the writers.
 */
final class TopicReader implements AutoCloseable {
    private final String topic;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();

    TopicReader(LogConnection connection, String topic) {
        this.topic = topic;
        this.consumer = new KafkaConsumer<>(
                connection.consumer(Map.of(
                        ConsumerConfig.ISOLATION_LEVEL_CONFIG,
                        "read_committed",
                        ConsumerConfig.AUTO_OFFSET_RESET_CONFIG,
                        "earliest")),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
        List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition()))
                .toList();
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
    }

    /** Every record from the topic's beginning to its end now. */
    List<ConsumerRecord<byte[], byte[]>> toItsEnd() {
        Map<TopicPartition, Long> ends = consumer.endOffsets(consumer.assignment());
        RunOnBroker.await("the end of " + topic, () -> {
            if (isAt(ends)) {
                return true;
            }
            consumer.poll(Duration.ofMillis(100)).forEach(found::add);
            return isAt(ends);
        });
        return List.copyOf(found);
    }

    private boolean isAt(Map<TopicPartition, Long> ends) {
        return ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
    }

    @Override
    public void close() {
        consumer.close();
    }
}
