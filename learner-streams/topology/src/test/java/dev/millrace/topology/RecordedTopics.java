package dev.millrace.topology;

import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Records of topics that a test holds in memory, one partition a topic unless it puts records elsewhere. */
public final class RecordedTopics {
    private final Map<TopicPartition, TreeMap<Long, ConsumerRecord<byte[], byte[]>>> records = new HashMap<>();

    public RecordedTopics(List<String> topics) {
        topics.forEach(topic -> records.put(new TopicPartition(topic, 0), new TreeMap<>()));
    }

    public void put(ConsumerRecord<byte[], byte[]> record) {
        records.computeIfAbsent(new TopicPartition(record.topic(), record.partition()), p -> new TreeMap<>())
                .put(record.offset(), record);
    }

    /** What is recorded on a topic's first partition, to be changed at will. */
    public TreeMap<Long, ConsumerRecord<byte[], byte[]>> of(String topic) {
        return of(new TopicPartition(topic, 0));
    }

    /** What is recorded on a partition, to be changed at will. */
    public TreeMap<Long, ConsumerRecord<byte[], byte[]>> of(TopicPartition partition) {
        return records.get(partition);
    }

    public List<TopicPartition> partitions(String topic) {
        return records.keySet().stream()
                .filter(p -> p.topic().equals(topic))
                .sorted(Comparator.comparingInt(TopicPartition::partition))
                .toList();
    }
}
