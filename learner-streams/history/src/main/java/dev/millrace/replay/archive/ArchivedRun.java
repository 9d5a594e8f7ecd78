package dev.millrace.replay.archive;

import dev.millrace.log.ContentTopic;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A run in the files that {@link RunExport} wrote, with the offsets that it had on its log.
 *
 * <p>This differs from a run that the page reads from its own broker's files. An archive is checked against hashes,
 * portable and immutable, and its index describes the run. A run on broker files is described by its own log, needs
 * transactions to be followed, and may continue. Both share {@link RecordedRun}, {@link ArchivedSchemas} and
 * {@link CursorFetcher}.
 */
public final class ArchivedRun implements RecordedRun {
    private final Path folder;
    private final ArchiveIndex index;
    private final SchemaRegistry registry;
    private final RunTopics topics;
    private final Map<TopicPartition, PartitionFile> files =
            new TreeMap<>(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition));
    private final LongAdder verified = new LongAdder();

    /** @throws ArchiveException if the folder holds no archive, or its index is not that of one */
    public ArchivedRun(Path folder) {
        this.folder = folder;
        this.index = ArchiveIndex.read(folder);
        this.topics = new RunTopics(index.topicPrefix());
        this.registry = new ArchivedSchemas(index.schemas());
        for (PartitionFile file : index.files()) {
            files.put(new TopicPartition(index.topicPrefix() + file.topic(), file.partition()), file);
        }
    }

    /** True if there is an archive in the folder. */
    public static boolean isIn(Path folder) {
        return ArchiveIndex.isIn(folder);
    }

    /** @throws ArchiveException naming the first file that is missing or is not as it was written */
    public void verify() {
        files.forEach((partition, file) ->
                new FileCheck(folder.resolve(file.file()), file, partition.topic(), verified::add).require());
    }

    /** True if the archive has all that the log held when it was exported; false if it is a range. */
    public boolean isWhole() {
        return index.isWhole();
    }

    /** What it holds if it was exported for some batches; empty if all of it, or stretches that somebody chose otherwise. */
    public Optional<HeldRange> held() {
        return Optional.ofNullable(index.held());
    }

    /** What its records were made from, if the run was never on a log of ours; it then has batches and trajectories alone. */
    public Optional<String> origin() {
        return Optional.ofNullable(index.origin());
    }

    /** Tells archives apart: a hash over its files' names, ranges and hashes. */
    public String digest() {
        StringBuilder files = new StringBuilder();
        for (PartitionFile file : index.files()) {
            files.append(file.file())
                    .append(' ')
                    .append(file.from())
                    .append(' ')
                    .append(file.end())
                    .append(' ')
                    .append(file.sha256())
                    .append('\n');
        }
        return ContentTopic.hash(files.toString().getBytes(StandardCharsets.UTF_8));
    }

    Map<Integer, String> schemas() {
        return index.schemas();
    }

    /** Records in all of its files. */
    long records() {
        return files.values().stream().mapToLong(PartitionFile::records).sum();
    }

    /** Every partition that the archive has. */
    List<TopicPartition> partitions() {
        return List.copyOf(files.keySet());
    }

    @Override
    public RunIdentity run() {
        return new RunIdentity(index.runId(), index.epoch(), index.policyId());
    }

    @Override
    public EpochLineage lineage() {
        return index.lineage() == null ? EpochLineage.FIRST : index.lineage();
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
        return index.configuration().isEmpty() ? Optional.empty() : Optional.of(index.configuration());
    }

    @Override
    public List<TopicPartition> partitions(String topic) {
        return files.keySet().stream()
                .filter(partition -> partition.topic().equals(topic))
                .toList();
    }

    @Override
    public Range range(TopicPartition partition) {
        PartitionFile file = file(partition);
        return new Range(file.from(), file.end());
    }

    private PartitionFile file(TopicPartition partition) {
        PartitionFile file = files.get(partition);
        if (file == null) {
            throw new ArchiveException(
                    "the archive in " + folder + " has no " + partition + "; export the run with it");
        }
        return file;
    }

    @Override
    public FileCursor read(TopicPartition partition, long from) {
        PartitionFile file = file(partition);
        return new FileCursor(folder.resolve(file.file()), partition, file, from);
    }

    @Override
    public RecordFetcher fetcher() {
        return new CursorFetcher(this::read);
    }

    @Override
    public boolean hasGrown() {
        return false;
    }

    @Override
    public void close() {
        // cursors and fetchers are closed by who has them
    }

    /** Reads a partition's file from an offset on. Confined to one thread. */
    static final class FileCursor implements SeekingCursor {
        private final Path file;
        private final TopicPartition partition;
        private final PartitionFile index;
        private final DataFileReader<GenericRecord> reader;
        private long from;
        private long last;
        /** Of the record that is read next, if that is the first of a block that the index names; -1 if not. */
        private long due = -1;

        /** @param index what the index says of the file */
        FileCursor(Path file, TopicPartition partition, PartitionFile index, long from) {
            this.file = file;
            this.partition = partition;
            this.index = index;
            this.last = index.from() - 1;
            try {
                reader = new DataFileReader<>(file.toFile(), new GenericDatumReader<>());
            } catch (IOException | AvroRuntimeException e) {
                throw broken(e);
            }
            if (!reader.getSchema().equals(ArchivedRecord.SCHEMA)) {
                close();
                throw broken(new IOException("its records are not those of an archive"));
            }
            seek(from);
        }

        @Override
        public void seek(long offset) {
            from = offset;
            last = index.from() - 1;
            List<long[]> blocks = index.blocks();
            if (blocks.isEmpty()) {
                return;
            }
            long[] at = blocks.get(0);
            for (long[] block : blocks) {
                if (block[0] > offset) {
                    break;
                }
                at = block;
            }
            try {
                reader.seek(at[1]);
            } catch (IOException e) {
                throw broken(e);
            }
            due = at[0];
        }

        @Override
        public Optional<ConsumerRecord<byte[], byte[]>> next() {
            try {
                while (reader.hasNext()) {
                    GenericRecord record = reader.next();
                    long offset = ArchivedRecord.offset(record);
                    if (offset <= last || offset >= index.end()) {
                        throw broken(new IOException("a record of offset " + offset + " follows one of " + last
                                + ", and offsets ascend, from " + index.from() + " to " + (index.end() - 1)));
                    }
                    if (due >= 0 && offset != due) {
                        throw broken(new IOException("the index says that a block begins with offset " + due
                                + ", and it begins with " + offset));
                    }
                    due = -1;
                    last = offset;
                    if (offset >= from) {
                        return Optional.of(ArchivedRecord.toRecord(record, partition));
                    }
                }
                return Optional.empty();
            } catch (AvroRuntimeException e) {
                throw broken(e);
            }
        }

        private ArchiveException broken(Exception e) {
            return new ArchiveException(
                    "cannot read " + file + ": " + e.getMessage()
                            + "; 'millrace import --verify' says whether it is as it was exported",
                    e);
        }

        @Override
        public void close() {
            try {
                reader.close();
            } catch (IOException e) {
                throw broken(e);
            }
        }
    }
}
