package dev.millrace.log.scan;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;
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
     * Takes it of a cluster, now.
     *
     * @param consumer reads committed records only
     * @param topics what is written last first
     */
    static ConsistentCut now(Consumer<?, ?> consumer, List<String> topics, Duration patience) {
        return of(
                topics,
                topic -> {
                    List<PartitionInfo> known = consumer.partitionsFor(topic, patience);
                    return known == null
                            ? List.of()
                            : known.stream()
                                    .map(info -> new TopicPartition(topic, info.partition()))
                                    .toList();
                },
                partitions -> {
                    Map<TopicPartition, Long> ends = consumer.endOffsets(partitions, patience);
                    Map<TopicPartition, Long> begins = consumer.beginningOffsets(partitions, patience);
                    return partitions.stream().collect(Collectors.toMap(partition -> partition, partition -> {
                        long begin = Objects.requireNonNull(begins.get(partition));
                        return new OffsetRange(begin, Math.max(begin, Objects.requireNonNull(ends.get(partition))));
                    }));
                });
    }

    /**
     * Takes it of wherever the records are.
     *
     * @param topics what is written last first
     * @param partitions of a topic; none if it does not exist
     * @param ranges of the partitions of a topic; called once a topic, in the order of the topics
     * @throws ScanException if a topic does not exist
     */
    public static ConsistentCut of(
            List<String> topics,
            Function<String, List<TopicPartition>> partitions,
            Function<List<TopicPartition>, Map<TopicPartition, OffsetRange>> ranges) {
        ConsistentCut cut = new ConsistentCut();
        for (String topic : topics) {
            List<TopicPartition> of = partitions.apply(topic);
            if (of.isEmpty()) {
                throw new ScanException("topic " + topic + " does not exist; is the prefix that of a run?");
            }
            cut.partitions.put(topic, of);
        }
        topics.forEach(topic -> cut.ranges.putAll(ranges.apply(cut.partitions(topic))));
        return cut;
    }

    public boolean has(TopicPartition partition) {
        return ranges.containsKey(partition);
    }

    /** How far a partition is read; it must be in the cut. */
    public OffsetRange of(TopicPartition partition) {
        return Objects.requireNonNull(ranges.get(partition), partition::toString);
    }

    public boolean has(String topic) {
        return partitions.containsKey(topic);
    }

    public List<TopicPartition> partitions(String topic) {
        return Objects.requireNonNull(partitions.get(topic), topic);
    }

    public Map<Integer, OffsetRange> ranges(String topic) {
        Map<Integer, OffsetRange> byNumber = new HashMap<>();
        partitions(topic).forEach(partition -> byNumber.put(partition.partition(), of(partition)));
        return byNumber;
    }
}
