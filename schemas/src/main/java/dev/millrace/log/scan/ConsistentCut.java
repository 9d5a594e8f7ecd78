package dev.millrace.log.scan;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * A consistent cut through the topics of a run that may be going on: how far each partition is read.
 *
 * <p>Ends are asked for one topic after the other, each after those that are written because of it: first what a step
 * trained on, last the rollouts. A decision that is inside the cut is then about a record that is inside it too, and a
 * record whose decision is not inside is in flight; nothing looks lost, and nothing is counted twice. The ends are those of
 * committed records: what a process that was killed had not committed is behind them.
 */
public final class ConsistentCut {
    private final Map<TopicPartition, OffsetRange> ranges = new HashMap<>();
    private final Map<String, List<TopicPartition>> partitions = new HashMap<>();

    private ConsistentCut() {}

    /**
     * Takes it now.
     *
     * @param consumer reads committed records only
     * @param topics what is written last first
     */
    static ConsistentCut now(Consumer<?, ?> consumer, List<String> topics, Duration patience) {
        ConsistentCut cut = new ConsistentCut();
        Map<String, List<TopicPartition>> all = new LinkedHashMap<>();
        for (String topic : topics) {
            List<TopicPartition> of = new ArrayList<>();
            List<PartitionInfo> known = consumer.partitionsFor(topic, patience);
            for (PartitionInfo info : known == null ? List.<PartitionInfo>of() : known) {
                of.add(new TopicPartition(topic, info.partition()));
            }
            if (of.isEmpty()) {
                throw new ScanException("topic " + topic + " does not exist; is the prefix that of a run?");
            }
            all.put(topic, of);
        }
        all.forEach((topic, of) -> {
            Map<TopicPartition, Long> ends = consumer.endOffsets(of, patience);
            Map<TopicPartition, Long> begins = consumer.beginningOffsets(of, patience);
            of.forEach(partition -> {
                long begin = Objects.requireNonNull(begins.get(partition));
                cut.ranges.put(
                        partition,
                        new OffsetRange(begin, Math.max(begin, Objects.requireNonNull(ends.get(partition)))));
            });
            cut.partitions.put(topic, of);
        });
        return cut;
    }

    /** Whether the partition belongs to the topics of the cut. */
    public boolean has(TopicPartition partition) {
        return ranges.containsKey(partition);
    }

    /** How far a partition is read; it must be in the cut. */
    public OffsetRange of(TopicPartition partition) {
        return Objects.requireNonNull(ranges.get(partition), partition::toString);
    }

    /** Whether the topic is in the cut. */
    public boolean has(String topic) {
        return partitions.containsKey(topic);
    }

    /** The partitions of one of the topics. */
    public List<TopicPartition> partitions(String topic) {
        return Objects.requireNonNull(partitions.get(topic), topic);
    }

    /** By partition number. */
    public Map<Integer, OffsetRange> ranges(String topic) {
        Map<Integer, OffsetRange> byNumber = new HashMap<>();
        partitions(topic).forEach(partition -> byNumber.put(partition.partition(), of(partition)));
        return byNumber;
    }
}
