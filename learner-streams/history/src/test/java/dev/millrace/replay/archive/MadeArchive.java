package dev.millrace.replay.archive;

import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import dev.millrace.replay.archive.ArchivedRun.FileCursor;
import dev.millrace.replay.archive.RecordedRun.Range;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;

/** A small archive in the real format: two partitions of rollouts and an empty one of outcomes. */
final class MadeArchive {
    static final String PREFIX = "made.";
    static final long RECORDS = 5;

    private MadeArchive() {}

    static ArchiveIndex write(Path folder) throws IOException {
        List<PartitionFile> files = new ArrayList<>();
        files.add(partition(folder, "rollouts", 0, List.of(0L, 1L, 4L), new Range(0, 6)));
        files.add(partition(folder, "rollouts", 1, List.of(7L, 9L), new Range(5, 10)));
        files.add(partition(folder, "outcomes", 0, List.of(), new Range(3, 3)));
        ArchiveIndex index = new ArchiveIndex(
                ArchiveIndex.FORMAT,
                "run-1",
                0,
                "policy",
                null,
                PREFIX,
                true,
                null,
                null,
                "run: {}",
                Map.of(1, "\"string\""),
                files);
        index.write(folder);
        return index;
    }

    static PartitionFile partition(Path folder, String topic, int number, List<Long> offsets, Range range)
            throws IOException {
        TopicPartition partition = new TopicPartition(PREFIX + topic, number);
        try (PartitionWriter writer = new PartitionWriter(folder, topic, partition)) {
            for (long offset : offsets) {
                writer.write(record(partition, offset));
            }
            return writer.end(range);
        }
    }

    private static ConsumerRecord<byte[], byte[]> record(TopicPartition partition, long offset) {
        byte[] key = {1};
        byte[] value = ("value " + offset).getBytes(StandardCharsets.UTF_8);
        return new ConsumerRecord<>(
                partition.topic(),
                partition.partition(),
                offset,
                1000 + offset,
                TimestampType.CREATE_TIME,
                key.length,
                value.length,
                key,
                value,
                new RecordHeaders().add("h", new byte[] {2}),
                Optional.empty());
    }

    /** Opens it, verifies it and reads every record; how many there were. */
    static long readAll(Path folder) {
        long records = 0;
        try (ArchivedRun run = new ArchivedRun(folder)) {
            run.verify();
            for (TopicPartition partition : run.partitions()) {
                try (FileCursor cursor =
                        run.read(partition, run.range(partition).from())) {
                    while (cursor.next().isPresent()) {
                        records++;
                    }
                }
            }
        }
        return records;
    }

    static String index(Path folder) throws IOException {
        return Files.readString(ArchiveIndex.in(folder));
    }

    static void index(Path folder, String text) throws IOException {
        Files.writeString(ArchiveIndex.in(folder), text);
    }
}
