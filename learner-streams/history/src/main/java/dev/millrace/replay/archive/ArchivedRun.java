package dev.millrace.replay.archive;

import dev.millrace.log.ContentTopic;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.TopicPartition;

/**
 * A run in the files that {@link RunExport} wrote, with the offsets that it had on its log.
 *
 * <p>Not the same as a run read from its own broker's files, as the page reads one that has ended in its folder. An archive is
 * checked against hashes, travels and stays as it is, and says in its index what the run is; there the run's own log says it, files are
 * the broker's, transactions have to be followed in them, and the run may go on. What the two share is {@link RecordedRun}, {@link
 * ArchivedSchemas} and {@link CursorFetcher}.
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

    /** Bytes that {@link #verify} has read so far; from any thread. */
    public long verifiedBytes() {
        return verified.sum();
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
}
