package dev.millrace.replay.archive;

import dev.millrace.log.fetch.RecordFetcher;
import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.TopicPartition;

/** A run in the files that {@link RunExport} wrote, with the offsets that it had on its log. */
public final class ArchivedRun implements RecordedRun {
    private final Path folder;
    private final ArchiveIndex index;
    private final SchemaRegistry registry;
    private final RunTopics topics;
    private final Map<TopicPartition, PartitionFile> files =
            new TreeMap<>(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition));
    private final LongAdder verified = new LongAdder();

    /** @throws ArchiveException if the folder holds no archive */
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
        for (PartitionFile file : files.values()) {
            Path path = folder.resolve(file.file());
            MessageDigest digest = PartitionWriter.sha256();
            try (InputStream in = Files.newInputStream(path)) {
                byte[] buffer = new byte[1 << 16];
                for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                    digest.update(buffer, 0, read);
                    verified.add(read);
                }
            } catch (IOException e) {
                throw new ArchiveException(
                        "cannot read " + path + ", which the archive's index names: " + e.getMessage(), e);
            }
            String found = HexFormat.of().formatHex(digest.digest());
            if (!found.equals(file.sha256())) {
                throw new ArchiveException(path + " is not as it was exported: its SHA-256 is " + found
                        + ", the index says " + file.sha256() + "; copy the archive again");
            }
        }
    }

    /** True if the archive has all that the log held when it was exported; false if it is a range. */
    public boolean isWhole() {
        return index.isWhole();
    }

    /** What it holds if it was exported for some batches; empty if all of it, or stretches that somebody chose otherwise. */
    public Optional<HeldRange> held() {
        return Optional.ofNullable(index.held());
    }

    Map<Integer, String> schemas() {
        return index.schemas();
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
        return new FileCursor(folder.resolve(file.file()), partition, file.blocks(), from);
    }

    @Override
    public RecordFetcher fetcher() {
        return new FileFetcher(this);
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
