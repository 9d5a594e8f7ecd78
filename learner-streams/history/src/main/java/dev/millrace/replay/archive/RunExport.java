package dev.millrace.replay.archive;

import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import dev.millrace.replay.archive.RecordedRun.Range;
import dev.millrace.schemas.registry.UnknownSchemaException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * Writes a recorded run or range to a folder: an Avro container per partition, and an index with hashes, schemas and
 * identity. Holds one block. Skips the topics' ownership claim; importers make their own.
 */
public final class RunExport {
    private static final int FRAME_BYTES = 5;

    private final RecordedRun run;
    private final LongAdder passed = new LongAdder();
    private final Set<Integer> ids = new TreeSet<>();

    public RunExport(RecordedRun run) {
        this.run = run;
    }

    /** Offsets that were passed so far; from any thread. */
    public long passed() {
        return passed.sum();
    }

    /** Every partition but the claim and these topics. */
    public Map<TopicPartition, Range> everythingBut(Set<String> without) {
        Map<TopicPartition, Range> all = new java.util.LinkedHashMap<>();
        for (String topic : run.topics().all()) {
            if (!topic.equals(run.topics().run()) && !without.contains(topic)) {
                run.partitions(topic).forEach(partition -> all.put(partition, run.range(partition)));
            }
        }
        return all;
    }

    /** @throws ArchiveException if it is not empty */
    public static void requireEmpty(Path folder) throws IOException {
        Files.createDirectories(folder);
        try (Stream<Path> there = Files.list(folder)) {
            if (there.findAny().isPresent()) {
                throw new ArchiveException(folder + " is not empty; give a new or empty folder to export to");
            }
        }
    }

    /** Exports ranges that are not chosen by batches. */
    public long to(Path folder, Map<TopicPartition, Range> ranges) {
        return to(folder, ranges, null);
    }

    public long to(Path folder, RangeSelection.Selected selected) {
        return to(folder, selected.ranges(), selected.held());
    }

    /**
     * @param ranges of each partition
     * @param folder new or empty
     * @return records written
     * @throws ArchiveException if the folder is not empty or not writable
     */
    private long to(Path folder, Map<TopicPartition, Range> ranges, @Nullable HeldRange held) {
        try {
            requireEmpty(folder);
            List<PartitionFile> files = new ArrayList<>();
            for (Map.Entry<TopicPartition, Range> each : ranges.entrySet()) {
                files.add(write(folder, each.getKey(), each.getValue()));
            }
            boolean isWhole = held == null
                    && ranges.entrySet().stream()
                            .allMatch(each -> run.range(each.getKey()).equals(each.getValue()));
            new ArchiveIndex(
                            ArchiveIndex.FORMAT,
                            run.run().runId(),
                            run.run().epoch(),
                            run.run().policyId(),
                            run.lineage().parent().isPresent() ? run.lineage() : null,
                            run.topics().prefix(),
                            isWhole,
                            held,
                            null,
                            run.configuration().orElse(""),
                            schemas(),
                            files)
                    .write(folder);
            return files.stream().mapToLong(PartitionFile::records).sum();
        } catch (IOException e) {
            throw new ArchiveException("cannot write to " + folder + ": " + e.getMessage(), e);
        }
    }

    private PartitionFile write(Path folder, TopicPartition partition, Range range) throws IOException {
        String topic = partition.topic().substring(run.topics().prefix().length());
        try (PartitionWriter writer = new PartitionWriter(folder, topic, partition);
                RecordCursor cursor = run.read(partition, range.from())) {
            long position = range.from();
            for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                    next.isPresent() && next.get().offset() < range.end();
                    next = cursor.next()) {
                writer.write(next.get());
                noteSchema(next.get().value());
                passed.add(next.get().offset() + 1 - position);
                position = next.get().offset() + 1;
            }
            passed.add(range.end() - position);
            return writer.end(range);
        }
    }

    private void noteSchema(byte[] value) {
        if (value != null && value.length >= FRAME_BYTES && value[0] == 0) {
            ids.add(ByteBuffer.wrap(value).getInt(1));
        }
    }

    private Map<Integer, String> schemas() {
        Map<Integer, String> schemas = new TreeMap<>();
        for (int id : ids) {
            try {
                schemas.put(id, run.registry().byId(id).toString());
            } catch (UnknownSchemaException e) {
                // foreign bytes that resemble a record; copied unchanged
            }
        }
        return schemas;
    }
}
