package dev.millrace.replay;

import dev.millrace.archive.RecordCursor;
import dev.millrace.archive.RecordedRun;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.fetch.RecordFetcher;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** A recorded run whose records a test holds in memory, one partition a topic unless it puts records elsewhere. */
public final class MemoryRun implements RecordedRun {
    private final RunIdentity run;
    private final RunTopics topics;
    private final SchemaRegistry registry;
    private final Map<TopicPartition, TreeMap<Long, ConsumerRecord<byte[], byte[]>>> records = new HashMap<>();

    public MemoryRun(RunIdentity run, RunTopics topics, SchemaRegistry registry) {
        this.run = run;
        this.topics = topics;
        this.registry = registry;
        topics.all().forEach(topic -> records.put(new TopicPartition(topic, 0), new TreeMap<>()));
    }

    public void put(ConsumerRecord<byte[], byte[]> record) {
        records.computeIfAbsent(new TopicPartition(record.topic(), record.partition()), p -> new TreeMap<>())
                .put(record.offset(), record);
    }

    /** What is recorded on a topic's first partition, to be changed at will. */
    public TreeMap<Long, ConsumerRecord<byte[], byte[]>> of(String topic) {
        return records.get(new TopicPartition(topic, 0));
    }

    @Override
    public RunIdentity run() {
        return run;
    }

    @Override
    public RunTopics topics() {
        return topics;
    }

    @Override
    public SchemaRegistry registry() {
        return registry;
    }

    @Override
    public Optional<String> configuration() {
        return Optional.empty();
    }

    @Override
    public List<TopicPartition> partitions(String topic) {
        return records.keySet().stream()
                .filter(p -> p.topic().equals(topic))
                .sorted(java.util.Comparator.comparingInt(TopicPartition::partition))
                .toList();
    }

    @Override
    public Range range(TopicPartition partition) {
        TreeMap<Long, ConsumerRecord<byte[], byte[]>> all = records.get(partition);
        return all.isEmpty() ? new Range(0, 0) : new Range(0, all.lastKey() + 1);
    }

    @Override
    public RecordCursor read(TopicPartition partition, long from) {
        Iterator<ConsumerRecord<byte[], byte[]>> rest =
                records.get(partition).tailMap(from).values().iterator();
        return new RecordCursor() {
            @Override
            public Optional<ConsumerRecord<byte[], byte[]>> next() {
                return rest.hasNext() ? Optional.of(rest.next()) : Optional.empty();
            }

            @Override
            public void close() {
                // reads a map
            }
        };
    }

    @Override
    public RecordFetcher fetcher() {
        return new RecordFetcher() {
            @Override
            public List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets) {
                List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
                for (long offset : offsets) {
                    ConsumerRecord<byte[], byte[]> record =
                            records.get(partition).get(offset);
                    if (record != null) {
                        found.add(record);
                    }
                }
                return found;
            }

            @Override
            public void close() {
                // reads a map
            }
        };
    }

    @Override
    public boolean hasGrown() {
        return false;
    }

    @Override
    public void close() {
        // nothing to close
    }
}
