package dev.millrace.replay.archive;

import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;

public final class BuiltArchive implements AutoCloseable {
    private static final int ID_AT = 1;

    private final Path folder;
    private final RunIdentity run;
    private final RunTopics topics;
    private final InMemorySchemaRegistry registry = new InMemorySchemaRegistry();
    private final Map<String, Topic> byName = new LinkedHashMap<>();
    private final Map<Integer, String> schemas = new TreeMap<>();
    private boolean isFinished;

    private static final class Topic {
        private final PartitionWriter writer;
        private final TopicPartition partition;
        private long end;

        Topic(PartitionWriter writer, TopicPartition partition) {
            this.writer = writer;
            this.partition = partition;
        }
    }

    /**
     * @param folder new or empty
     * @throws ArchiveException if it is not empty or not writable
     */
    public BuiltArchive(Path folder, RunIdentity run, RunTopics topics) {
        this.folder = folder;
        this.run = run;
        this.topics = topics;
        try {
            Files.createDirectories(folder);
            try (Stream<Path> there = Files.list(folder)) {
                if (there.findAny().isPresent()) {
                    throw new ArchiveException(folder + " is not empty; give a new or empty folder for the archive");
                }
            }
        } catch (IOException e) {
            throw unwritable(e);
        }
    }

    private ArchiveException unwritable(IOException e) {
        return new ArchiveException("cannot write to " + folder + ": " + e.getMessage(), e);
    }

    /**
     * @param topic with prefix
     * @return its offset
     */
    public <T extends SpecificRecord> long add(String topic, String key, Class<T> type, T record, long timestampMs) {
        try {
            Topic of = byName.get(topic);
            if (of == null) {
                TopicPartition partition = new TopicPartition(topic, 0);
                of = new Topic(
                        new PartitionWriter(
                                folder, topic.substring(topics.prefix().length()), partition),
                        partition);
                byName.put(topic, of);
            }
            byte[] name = key.getBytes(StandardCharsets.UTF_8);
            byte[] value = Objects.requireNonNull(
                    AvroSerde.of(type, registry).serializer().serialize(topic, record), "a record is not a tombstone");
            int id = ByteBuffer.wrap(value).getInt(ID_AT);
            schemas.computeIfAbsent(id, unseen -> registry.byId(unseen).toString());
            of.writer.write(new ConsumerRecord<>(
                    topic,
                    of.partition.partition(),
                    of.end,
                    timestampMs,
                    TimestampType.CREATE_TIME,
                    name.length,
                    value.length,
                    name,
                    value,
                    new RecordHeaders(),
                    Optional.empty()));
            return of.end++;
        } catch (IOException e) {
            throw unwritable(e);
        }
    }

    /**
     * Completes the archive.
     *
     * @param origin source of the records, a sentence
     */
    public void finish(String origin, String configuration) {
        List<PartitionFile> files = new ArrayList<>();
        try {
            for (Topic topic : byName.values()) {
                files.add(topic.writer.end(new RecordedRun.Range(0, topic.end)));
            }
        } catch (IOException e) {
            throw unwritable(e);
        }
        new ArchiveIndex(
                        ArchiveIndex.FORMAT,
                        run.runId(),
                        run.epoch(),
                        run.policyId(),
                        null,
                        topics.prefix(),
                        true,
                        null,
                        origin,
                        configuration,
                        schemas,
                        files)
                .write(folder);
        isFinished = true;
    }

    /** Without {@link #finish} the folder is removed. */
    @Override
    public void close() {
        if (isFinished) {
            return;
        }
        try {
            for (Topic topic : byName.values()) {
                topic.writer.close();
                Files.deleteIfExists(folder.resolve(PartitionFile.name(
                        topic.partition.topic().substring(topics.prefix().length()), topic.partition.partition())));
            }
            Files.deleteIfExists(folder);
        } catch (IOException e) {
            throw unwritable(e);
        }
    }
}
