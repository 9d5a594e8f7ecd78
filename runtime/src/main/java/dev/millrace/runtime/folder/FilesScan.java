package dev.millrace.runtime.folder;

import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.runtime.folder.FolderRun.BrokerFiles;
import dev.millrace.runtime.folder.FolderRun.FilesCursor;
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

/** Reads the topics of a run in the files of its broker. Owned by one thread. */
final class FilesScan implements TopicScan {
    private final BrokerFiles files;
    private final Set<String> required;
    private long records;
    private long bytes;

    FilesScan(BrokerFiles files, RunTopics topics) {
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
                    var range = files.of(partition).range();
                    return new OffsetRange(range.from(), range.end());
                })));
    }

    @Override
    public Map<TopicPartition, Long> keptFrom(List<TopicPartition> partitions) {
        return partitions.stream()
                .collect(Collectors.toMap(
                        Function.identity(),
                        partition -> files.of(partition).range().from()));
    }

    @Override
    public Map<TopicPartition, Long> since(ConsistentCut cut, List<TopicPartition> partitions, long timestampMs) {
        Map<TopicPartition, Long> from = new HashMap<>();
        for (TopicPartition partition : partitions) {
            OffsetRange range = cut.of(partition);
            long found = files.of(partition).since(timestampMs).orElse(range.end());
            from.put(partition, Math.min(range.end(), Math.max(range.begin(), found)));
        }
        return from;
    }

    @Override
    public void readWhile(
            Map<TopicPartition, Long> from, ConsistentCut cut, Predicate<ConsumerRecord<byte[], byte[]>> reader) {
        List<FilesCursor> open = new ArrayList<>();
        try {
            from.forEach((partition, offset) -> open.add(new FilesCursor(partition, files.of(partition), offset)));
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
            open.forEach(FilesCursor::close);
        }
    }

    /** Whether the record is inside the cut and its reader wants the next one. */
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
        // each reading closes the files that it opened
    }
}
