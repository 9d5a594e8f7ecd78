package dev.millrace.replay.archive;

import dev.millrace.log.ContentTopic;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import dev.millrace.replay.archive.RecordCursor.SeekingCursor;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;
import java.util.stream.Stream;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A run in files of {@link RunExport}, at its original offsets.
 *
 * <p>An archive is hashed, portable and immutable, and described by its index; a run on broker files is described by
 * its log, has open transactions, and may continue. Both share {@link RecordedRun}, {@link ArchivedSchemas} and {@link
 * CursorFetcher}.
 */
public final class ArchivedRun implements RecordedRun, RunRecords {
    private final Path folder;
    private final ArchiveIndex index;
    private final SchemaRegistry registry;
    private final RunTopics topics;
    private final Map<TopicPartition, PartitionFile> files =
            new TreeMap<>(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition));
    private final LongAdder verified = new LongAdder();

    /** @throws ArchiveException without an archive, or with an invalid index */
    public ArchivedRun(Path folder) {
        this.folder = folder;
        this.index = ArchiveIndex.read(folder);
        this.topics = new RunTopics(index.topicPrefix());
        this.registry = new ArchivedSchemas(index.schemas());
        for (PartitionFile file : index.files()) {
            files.put(new TopicPartition(index.topicPrefix() + file.topic(), file.partition()), file);
        }
    }

    public static boolean isIn(Path folder) {
        return ArchiveIndex.isIn(folder);
    }

    /** @throws ArchiveException naming the first missing or changed file */
    public void verify() {
        files.forEach((partition, file) ->
                new FileCheck(folder.resolve(file.file()), file, partition.topic(), verified::add).require());
    }

    /** False for an exported range. */
    public boolean isWhole() {
        return index.isWhole();
    }

    /** Empty unless exported for some batches. */
    public Optional<HeldRange> held() {
        return Optional.ofNullable(index.held());
    }

    /** Source of records that were never on our log; the run then has no prompts, scores and weights. */
    public Optional<String> origin() {
        return Optional.ofNullable(index.origin());
    }

    /** Why its rollouts cannot be accounted for, and the way out, as clauses; empty if they can. */
    public Optional<String> missing() {
        if (!isWhole()) {
            return Optional.of("it holds "
                    + held().map(held -> "batches " + held.firstBatch() + " to " + held.lastBatch())
                            .orElse("some records")
                    + " of the run; ask the run, or export all of it, without --from-version and --to-version");
        }
        if (origin().isPresent()) {
            return partitions(topics.rollouts()).isEmpty()
                    ? Optional.of("an earlier version made it without rollouts and steps; import the records again")
                    : Optional.empty();
        }
        return Stream.of(
                        topics.rollouts(),
                        topics.scores(),
                        topics.trajectories(),
                        topics.batches(),
                        topics.trainingLog(),
                        topics.outcomes(),
                        topics.deadLetters())
                .filter(topic -> partitions(topic).isEmpty())
                .findFirst()
                .map(topic -> "it was exported without "
                        + topic.substring(topics.prefix().length()) + "; export the run with them");
    }

    /** Hash over the files' names, ranges and hashes. */
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

    long records() {
        return files.values().stream().mapToLong(PartitionFile::records).sum();
    }

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

    /** Scans what is here; a topic that is not counts as empty. */
    @Override
    public TopicScan scan(Duration patience) {
        return new CursorScan(new ArchivedFiles(), topics);
    }

    private final class ArchivedFiles implements CursorScan.Files {
        private final Set<String> required = Set.copyOf(topics.required());

        @Override
        public List<TopicPartition> partitions(String topic) {
            List<TopicPartition> there = ArchivedRun.this.partitions(topic);
            return there.isEmpty() && required.contains(topic) ? List.of(new TopicPartition(topic, 0)) : there;
        }

        @Override
        public Range range(TopicPartition partition) {
            return files.containsKey(partition) ? ArchivedRun.this.range(partition) : new Range(0, 0);
        }

        /** Archives have no index by time. */
        @Override
        public long since(TopicPartition partition, long timestampMs) {
            return range(partition).from();
        }

        @Override
        public FileCursor read(TopicPartition partition, long from) {
            return ArchivedRun.this.read(partition, from);
        }
    }

    @Override
    public boolean hasGrown() {
        return false;
    }

    @Override
    public void close() {
        // callers close cursors and fetchers
    }

    /** Reads a partition's file from an offset. Confined to one thread. */
    static final class FileCursor implements SeekingCursor {
        private final Path file;
        private final TopicPartition partition;
        private final PartitionFile index;
        private final DataFileReader<GenericRecord> reader;
        private long from;
        private long last;
        /** Offset of the next record if it starts an indexed block, else -1. */
        private long due = -1;

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
                    "cannot read " + file + ": " + e.getMessage() + "; check it with 'millrace import --verify'", e);
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

    /**
     * Checks a partition's file against the index: hash, framing, record count. Decompresses nothing, and trusts no
     * length before as many bytes arrived.
     *
     * <pre>
     *  "Obj" 1   metadata: map of texts to bytes   marker of 16 bytes
     *  then blocks: records in it, length, that many packed bytes, the marker again
     * </pre>
     */
    private static final class FileCheck {
        private static final byte[] MAGIC = {'O', 'b', 'j', 1};
        private static final int MARKER_BYTES = 16;
        private static final int MOST_METADATA = 1 << 20;
        private static final int MOST_ENTRIES = 100;
        /** A block is about 1 MiB uncompressed, or one record within the topic's limit. */
        private static final long MOST_BLOCK_BYTES = 1 << 30;

        private final Path path;
        private final PartitionFile file;
        private final String topic;
        private final LongConsumer passed;
        private InputStream in = InputStream.nullInputStream();
        private long position;

        /**
         * @param topic with prefix
         * @param passed receives the number of further bytes read
         */
        FileCheck(Path path, PartitionFile file, String topic, LongConsumer passed) {
            this.path = path;
            this.file = file;
            this.topic = topic;
            this.passed = passed;
        }

        /** @throws ArchiveException if it is missing or differs from the index */
        void require() {
            MessageDigest digest = DigestUtils.getSha256Digest();
            ArchiveException broken = null;
            OpenOption[] options = {StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS};
            try (InputStream opened = new BufferedInputStream(
                    new DigestInputStream(Files.newInputStream(path, options), digest), 1 << 16)) {
                in = opened;
                try {
                    frame();
                } catch (EOFException e) {
                    broken = refused("it is truncated");
                } catch (ArchiveException e) {
                    broken = e;
                }
                skip(Long.MAX_VALUE); // finish the hash first: it tells a damaged file from an invalid one
            } catch (IOException e) {
                throw new ArchiveException(
                        "cannot read " + path + ", which the archive's index names: " + e.getMessage(), e);
            }
            String found = HexFormat.of().formatHex(digest.digest());
            if (!found.equals(file.sha256())) {
                throw new ArchiveException(path + " was modified after the export: its SHA-256 is " + found
                        + ", the index says " + file.sha256() + "; copy the archive again");
            }
            if (broken != null) {
                throw broken;
            }
        }

        private void frame() throws IOException {
            if (!Arrays.equals(bytes(MAGIC.length), MAGIC)) {
                throw refused("it is not an Avro container");
            }
            metadata();
            byte[] marker = bytes(MARKER_BYTES);
            Set<Long> due = new HashSet<>();
            file.blocks().forEach(block -> due.add(block[1]));
            if (!file.blocks().isEmpty() && file.blocks().get(0)[1] != position) {
                throw refused("its first block begins at byte " + position + ", and the index says at "
                        + file.blocks().get(0)[1]);
            }
            long records = 0;
            for (int first = read(); first >= 0; first = read()) {
                due.remove(position - 1);
                long count = varint(first);
                if (count < 1 || count > file.records() - records) {
                    throw refused("a block at byte " + position + " says it has " + count
                            + " records, and the index expects " + (file.records() - records) + " more");
                }
                records += count;
                long length = varint(readByte());
                if (length < 0 || length > MOST_BLOCK_BYTES) {
                    throw refused("a block at byte " + position + " says it has " + length + " bytes, and has at most "
                            + MOST_BLOCK_BYTES);
                }
                if (skip(length) < length) {
                    throw new EOFException();
                }
                if (!Arrays.equals(bytes(MARKER_BYTES), marker)) {
                    throw refused("a block does not end at its declared end, before byte " + position);
                }
            }
            if (records != file.records()) {
                throw refused("it has " + records + " records, and the index says " + file.records());
            }
            if (!due.isEmpty()) {
                throw refused("no block begins at byte " + due.iterator().next() + ", where the index expects one");
            }
        }

        private void metadata() throws IOException {
            Map<String, String> metadata = new HashMap<>();
            for (long count = varint(readByte()); count != 0; count = varint(readByte())) {
                if (count < 0 && count > Long.MIN_VALUE) { // the byte size of the entries follows
                    count = -count;
                    varint(readByte());
                }
                if (count < 0 || count > MOST_ENTRIES - metadata.size()) {
                    throw refused("it has more than " + MOST_ENTRIES + " entries of metadata");
                }
                for (long i = 0; i < count; i++) {
                    metadata.put(text(), text());
                }
            }
            require("millrace.topic", topic, metadata);
            require("millrace.partition", Integer.toString(file.partition()), metadata);
            require("avro.codec", "zstandard", metadata);
            String schema = metadata.getOrDefault("avro.schema", "");
            try {
                if (new Schema.Parser().parse(schema).equals(ArchivedRecord.SCHEMA)) {
                    return;
                }
            } catch (RuntimeException e) { // Avro's parser throws no common exception type
                throw refused("its schema is invalid: " + e.getMessage());
            }
            throw refused("its records are not those of an archive");
        }

        private void require(String key, String due, Map<String, String> metadata) {
            if (!due.equals(metadata.get(key))) {
                throw refused("its " + key + " is " + metadata.get(key) + ", expected " + due);
            }
        }

        private String text() throws IOException {
            long length = varint(readByte());
            if (length < 0 || length > MOST_METADATA) {
                throw refused("an entry of its metadata says it has " + length + " bytes");
            }
            return new String(bytes((int) length), StandardCharsets.UTF_8);
        }

        private byte[] bytes(int count) throws IOException {
            byte[] bytes = in.readNBytes(count);
            passed(bytes.length);
            if (bytes.length < count) {
                throw new EOFException();
            }
            return bytes;
        }

        private int read() throws IOException {
            int next = in.read();
            if (next >= 0) {
                passed(1);
            }
            return next;
        }

        private int readByte() throws IOException {
            int next = read();
            if (next < 0) {
                throw new EOFException();
            }
            return next;
        }

        /** Avro's zig-zag varint. */
        private long varint(int first) throws IOException {
            long value = first & 0x7f;
            int next = first;
            for (int shift = 7; (next & 0x80) != 0; shift += 7) {
                if (shift > 63) {
                    throw refused("a number at byte " + position + " has more than 64 bits");
                }
                next = readByte();
                value |= (next & 0x7fL) << shift;
            }
            return value >>> 1 ^ -(value & 1);
        }

        private long skip(long count) throws IOException {
            byte[] buffer = new byte[(int) Math.min(count, 1 << 16)];
            long skipped = 0;
            while (skipped < count) {
                int read = in.read(buffer, 0, (int) Math.min(buffer.length, count - skipped));
                if (read < 0) {
                    break;
                }
                skipped += read;
                passed(read);
            }
            return skipped;
        }

        private void passed(long bytes) {
            position += bytes;
            passed.accept(bytes);
        }

        private ArchiveException refused(String why) {
            return new ArchiveException(path + " is not a valid archive file: " + why
                    + "; export the run again, or copy the archive again");
        }
    }
}
