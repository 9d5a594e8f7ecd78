package dev.millrace.replay.archive;

import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.archive.RecordedRun.Range;
import dev.millrace.schemas.run.RunTopics;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads the topics of a run by cursors over files. Owned by one thread. */
public final class CursorScan implements TopicScan {
    private final Files files;
    private final Set<String> required;
    private long records;
    private long bytes;

    /** What is read. */
    public interface Files {
        /** In order; none where there is no such topic. */
        List<TopicPartition> partitions(String topic);

        Range range(TopicPartition partition);

        /** Returns the first offset of this time or later, or any earlier one; the range's end if there is none. */
        long since(TopicPartition partition, long timestampMs);

        RecordCursor read(TopicPartition partition, long from);
    }

    public CursorScan(Files files, RunTopics topics) {
        this.files = files;
        this.required = Set.copyOf(topics.required());
    }

    @Override
    public ConsistentCut cut(List<String> topics) {
        return ConsistentCut.of(
                topics.stream()
                        .filter(topic -> required.contains(topic)
                                || !files.partitions(topic).isEmpty())
                        .toList(),
                files::partitions,
                partitions -> partitions.stream().collect(Collectors.toMap(Function.identity(), partition -> {
                    Range range = files.range(partition);
                    return new OffsetRange(range.from(), range.end());
                })));
    }

    @Override
    public Map<TopicPartition, Long> keptFrom(List<TopicPartition> partitions) {
        return partitions.stream()
                .collect(Collectors.toMap(
                        Function.identity(), partition -> files.range(partition).from()));
    }

    @Override
    public Map<TopicPartition, Long> since(ConsistentCut cut, List<TopicPartition> partitions, long timestampMs) {
        Map<TopicPartition, Long> from = new HashMap<>();
        for (TopicPartition partition : partitions) {
            OffsetRange range = cut.of(partition);
            from.put(partition, Math.min(range.end(), Math.max(range.begin(), files.since(partition, timestampMs))));
        }
        return from;
    }

    @Override
    public void readWhile(
            Map<TopicPartition, Long> from, ConsistentCut cut, Predicate<ConsumerRecord<byte[], byte[]>> reader) {
        List<RecordCursor> open = new ArrayList<>();
        try {
            from.forEach((partition, offset) -> {
                if (offset < cut.of(partition).end()) {
                    open.add(files.read(partition, offset));
                }
            });
            while (!open.isEmpty()) {
                open.removeIf(cursor -> {
                    boolean goesOn = cursor.next()
                            .filter(record -> isHanded(record, cut, reader))
                            .isPresent();
                    if (!goesOn) {
                        cursor.close();
                    }
                    return !goesOn;
                });
            }
        } finally {
            open.forEach(RecordCursor::close);
        }
    }

    /** Returns whether the record is inside the cut and its reader wants the next one. */
    private boolean isHanded(
            ConsumerRecord<byte[], byte[]> record,
            ConsistentCut cut,
            Predicate<ConsumerRecord<byte[], byte[]>> reader) {
        if (record.offset()
                >= cut.of(new TopicPartition(record.topic(), record.partition()))
                        .end()) {
            return false;
        }
        records++;
        bytes += Math.max(0, record.serializedKeySize()) + Math.max(0, record.serializedValueSize());
        return reader.test(record);
    }

    @Override
    public long records() {
        return records;
    }

    @Override
    public long bytes() {
        return bytes;
    }

    @Override
    public void close() {
        // each scan closes its files
    }
}
