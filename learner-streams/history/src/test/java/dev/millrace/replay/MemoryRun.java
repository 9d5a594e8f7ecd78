package dev.millrace.replay;

import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.RecordedTopics;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyHarness;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** A recorded run whose records a test holds in memory. */
public final class MemoryRun implements RecordedRun {
    private final RunIdentity run;
    private final RunTopics topics;
    private final SchemaRegistry registry;
    private final RecordedTopics records;

    public MemoryRun(RunIdentity run, RunTopics topics, SchemaRegistry registry) {
        this(run, topics, registry, new RecordedTopics(topics.all()));
    }

    public MemoryRun(RunIdentity run, RunTopics topics, SchemaRegistry registry, RecordedTopics records) {
        this.run = run;
        this.topics = topics;
        this.registry = registry;
        this.records = records;
    }

    /** What a test did to the topology. */
    public static MemoryRun of(TopologyHarness harness) {
        return new MemoryRun(Samples.RUN, Samples.TOPICS, harness.schemas, harness.recorded());
    }

    public void put(ConsumerRecord<byte[], byte[]> record) {
        records.put(record);
    }

    /** Appends a copy of the record at an offset of a topic's first partition. */
    public void copy(String topic, long offset) {
        ConsumerRecord<byte[], byte[]> old = of(topic).get(offset);
        put(new ConsumerRecord<>(
                topic,
                0,
                of(topic).lastKey() + 1,
                old.timestamp(),
                old.timestampType(),
                old.serializedKeySize(),
                old.serializedValueSize(),
                old.key(),
                old.value(),
                old.headers(),
                Optional.empty()));
    }

    /** What is recorded on a topic's first partition, to be changed at will. */
    public TreeMap<Long, ConsumerRecord<byte[], byte[]>> of(String topic) {
        return records.of(topic);
    }

    @Override
    public RunIdentity run() {
        return run;
    }

    @Override
    public EpochLineage lineage() {
        return EpochLineage.FIRST;
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
        return records.partitions(topic);
    }

    @Override
    public Range range(TopicPartition partition) {
        TreeMap<Long, ConsumerRecord<byte[], byte[]>> all = records.of(partition);
        return all.isEmpty() ? new Range(0, 0) : new Range(0, all.lastKey() + 1);
    }

    @Override
    public RecordCursor read(TopicPartition partition, long from) {
        Iterator<ConsumerRecord<byte[], byte[]>> rest =
                records.of(partition).tailMap(from).values().iterator();
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
                            records.of(partition).get(offset);
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
