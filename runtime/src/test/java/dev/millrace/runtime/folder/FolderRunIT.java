package dev.millrace.runtime.folder;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicSettings;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.CursorFetcher;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.folder.FolderRun.BrokerFiles;
import dev.millrace.runtime.folder.FolderRun.FilesCursor;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.schemas.run.RunTopics;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** The files of a run's broker are read as a consumer of committed records reads its log. */
class FolderRunIT {
    private static final TopicPartition ODD = new TopicPartition("odd", 0);

    @TempDir(cleanup = CleanupMode.NEVER) // the broker's, which outlives a test
    private static Path folder;

    private static List<String> consumed;
    private static long end;
    /** Broker's offset for a timestamp. */
    private static final Map<Long, Long> since = new HashMap<>();

    @BeforeAll
    static void make() throws Exception {
        ImportedRun.into(folder);
        KafkaProducer<byte[], byte[]> one;
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder.resolve("broker"))) {
            one = producer(Map.of("bootstrap.servers", broker.bootstrapServers(), "transactional.id", "one"));
            consumed = odd(broker.bootstrapServers(), one);
        }
        one.close(Duration.ZERO); // not before: it would end its transaction
    }

    /**
     * A topic with transactions that were committed, aborted and left open, next to records without one, in several
     * files.
     */
    private static List<String> odd(String servers, KafkaProducer<byte[], byte[]> one) throws Exception {
        try (TopicAdministration administration =
                new TopicAdministration(Map.of("bootstrap.servers", servers), TopicsConfig.defaults())) {
            administration.prepare(List.of(new TopicSettings(
                    ODD.topic(), 1, Map.of("segment.bytes", Integer.toString(1 << 20), "segment.ms", "1000000"))));
        }
        try (KafkaProducer<byte[], byte[]> plain = producer(Map.of("bootstrap.servers", servers));
                KafkaProducer<byte[], byte[]> two = producer(
                        Map.of("bootstrap.servers", servers, "transactional.id", "two", "compression.type", "gzip"))) {
            one.initTransactions();
            two.initTransactions();
            for (int round = 0; round < 60; round++) {
                one.beginTransaction();
                two.beginTransaction();
                for (int i = 0; i < 5; i++) {
                    send(one, "one-" + round + "-" + i);
                    send(plain, "plain-" + round + "-" + i);
                    send(two, "two-" + round + "-" + i);
                }
                one.flush();
                two.flush();
                if (round % 3 == 0) {
                    one.abortTransaction();
                } else {
                    one.commitTransaction();
                }
                if (round % 4 == 1) {
                    two.abortTransaction();
                } else {
                    two.commitTransaction();
                }
            }
            one.beginTransaction();
            send(one, "open");
            one.flush();
            send(plain, "behind it");
            plain.flush();
            return consumed(servers);
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(Map<String, Object> settings) {
        Map<String, Object> one = new HashMap<>(settings);
        one.put("max.in.flight.requests.per.connection", 1); // a transaction may meet the last one still being closed
        return new KafkaProducer<>(one, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String text) {
        byte[] value = Arrays.copyOf((text + " ").getBytes(StandardCharsets.UTF_8), 4000);
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(ODD.topic(), text.getBytes(StandardCharsets.UTF_8), value);
        record.headers().add("of", text.getBytes(StandardCharsets.UTF_8));
        producer.send(record);
    }

    private static List<String> consumed(String servers) {
        List<String> read = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", servers, "isolation.level", "read_committed"),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
            consumer.assign(List.of(ODD));
            consumer.seekToBeginning(List.of(ODD));
            end = consumer.endOffsets(List.of(ODD)).get(ODD);
            while (consumer.position(ODD) < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> {
                    read.add(told(record));
                    since.put(record.timestamp(), end);
                    since.put(record.timestamp() + 1, end);
                });
            }
            since.put(0L, end);
            since.replaceAll((timeMs, unknown) -> {
                OffsetAndTimestamp found =
                        consumer.offsetsForTimes(Map.of(ODD, timeMs)).get(ODD);
                return found == null ? end : found.offset();
            });
        }
        return read;
    }

    private static String told(ConsumerRecord<byte[], byte[]> record) {
        return record.offset() + " " + record.timestamp() + " " + text(record.key()) + " "
                + (record.value() == null ? "-" : Arrays.hashCode(record.value())) + " "
                + Arrays.stream(record.headers().toArray())
                        .map(header -> header.key() + "=" + text(header.value()))
                        .toList();
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : new String(bytes, StandardCharsets.UTF_8);
    }

    private static List<String> all(RecordCursor cursor) {
        return all(cursor, FolderRunIT::told);
    }

    private static List<String> all(RecordCursor cursor, Function<ConsumerRecord<byte[], byte[]>, String> told) {
        List<String> read = new ArrayList<>();
        try (cursor) {
            for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                    next.isPresent();
                    next = cursor.next()) {
                read.add(told.apply(next.get()));
            }
        }
        return read;
    }

    /** Without the value, whose schema has another id on another log. */
    private static String place(ConsumerRecord<byte[], byte[]> record) {
        return record.offset() + " " + record.timestamp() + " " + text(record.key());
    }

    @Test
    void shouldReadWhatAConsumerOfCommittedRecordsReads() {
        PartitionFiles files = BrokerFiles.in(folder.resolve("broker")).of(ODD);
        assertThat(files.segments()).as("several files").hasSizeGreaterThan(1);
        assertThat(consumed).isNotEmpty().noneMatch(record -> record.contains("behind it"));
        assertThat(all(new FilesCursor(ODD, files, 0))).isEqualTo(consumed);
        for (int from :
                IntStream.iterate(0, at -> at < consumed.size(), at -> at + 97).toArray()) {
            long offset = Long.parseLong(consumed.get(from).split(" ")[0]);
            assertThat(all(new FilesCursor(ODD, files, offset)))
                    .as("from offset " + offset)
                    .isEqualTo(consumed.subList(from, consumed.size()));
        }
    }

    @Test
    void shouldFindSingleRecords() {
        long[] offsets = consumed.stream()
                .mapToLong(record -> Long.parseLong(record.split(" ")[0]))
                .filter(offset -> offset % 7 == 0 || offset > 900)
                .toArray();
        BrokerFiles files = BrokerFiles.in(folder.resolve("broker"));
        try (CursorFetcher fetcher =
                new CursorFetcher((partition, from) -> new FilesCursor(partition, files.of(partition), from))) {
            assertThat(offsets(fetcher, offsets)).isEqualTo(offsets);
            assertThat(offsets(fetcher, Long.MAX_VALUE - 1)).isEmpty();
            assertThat(offsets(fetcher)).isEmpty();
            long[] back = {offsets[1], offsets[offsets.length - 1]};
            assertThat(offsets(fetcher, back)).as("before those that were read").isEqualTo(back);
        }
    }

    private static long[] offsets(CursorFetcher fetcher, long... wanted) {
        return fetcher.fetch(ODD, wanted).stream()
                .mapToLong(ConsumerRecord::offset)
                .toArray();
    }

    @Test
    void shouldEndWhereTheLastWholeBatchDoes() throws Exception {
        BrokerFiles files = BrokerFiles.in(folder.resolve("broker"));
        List<Segment> segments = files.of(ODD).segments();
        Path copy = Files.createDirectories(folder.resolve("copy").resolve(ODD.toString()));
        for (Segment segment : segments) {
            Files.copy(segment.file(), copy.resolve(segment.file().getFileName()));
        }
        Path last = copy.resolve(segments.get(segments.size() - 1).file().getFileName());
        Files.write(last, ByteBuffer.allocate(40).putLong(1 << 20).putInt(500).array(), StandardOpenOption.APPEND);
        BrokerFiles torn = BrokerFiles.in(folder.resolve("copy"));
        assertThat(all(new FilesCursor(ODD, torn.of(ODD), 0))).isEqualTo(consumed);
        Files.write(last, new byte[4096], StandardOpenOption.APPEND); // as a loss of power leaves it
        assertThat(all(new FilesCursor(
                        ODD, BrokerFiles.in(folder.resolve("copy")).of(ODD), 0)))
                .isEqualTo(consumed);
    }

    private static FolderRun opened() {
        return FolderRun.open(
                folder,
                new ConfigLayers()
                        .begunWith(ConfigTree.read(RunDirectory.config(folder)))
                        .whereabouts());
    }

    @Test
    void shouldScanAsOnACluster() {
        try (FolderRun run = opened();
                TopicScan scan = run.scan(Duration.ZERO)) {
            ConsistentCut cut = scan.cut(List.of(ODD.topic(), run.topics().teacherScores()));
            assertThat(cut.has(run.topics().teacherScores()))
                    .as("a topic that the run lacks")
                    .isFalse();
            assertThat(cut.of(ODD)).isEqualTo(new OffsetRange(0, end));
            assertThat(scan.keptFrom(List.of(ODD))).isEqualTo(Map.of(ODD, 0L));
            List<String> read = new ArrayList<>();
            scan.read(ODD.topic(), cut, record -> read.add(told(record)));
            assertThat(read).isEqualTo(consumed);
            assertThat(scan.records()).isEqualTo(consumed.size());
            assertThat(scan.bytes()).isGreaterThan(4000L * consumed.size());
            since.forEach((timeMs, offset) -> assertThat(scan.since(cut, List.of(ODD), timeMs))
                    .as("since " + timeMs)
                    .isEqualTo(Map.of(ODD, offset)));
            assertThat(scan.at(cut, ODD, end)).isEmpty();
        }
    }

    @Test
    void shouldNotDoWithoutABrokerThatWasKilledOrLacksATopic() throws Exception {
        Path copy = folder.resolve("killed");
        RunTopics topics;
        try (FolderRun run = opened()) {
            topics = run.topics();
        }
        assertThat(FolderRun.isComplete(folder, topics)).isTrue();
        for (String topic : topics.required()) {
            Files.createDirectories(copy.resolve("broker").resolve(topic + "-0"));
        }
        assertThat(FolderRun.isComplete(copy, topics)).as("killed").isFalse();
        Files.createFile(copy.resolve("broker").resolve(".kafka_cleanshutdown"));
        assertThat(FolderRun.isComplete(copy, topics)).isTrue();
        Files.delete(copy.resolve("broker").resolve(topics.batches() + "-0"));
        assertThat(FolderRun.isComplete(copy, topics)).as("without batches").isFalse();
    }

    @Test
    void shouldBeTheRunThatWasRecordedWithoutHoldingItsFolder() {
        try (FolderRun run = opened();
                ArchivedRun archive = new ArchivedRun(ImportedRun.ARCHIVE)) {
            assertThat(run.run()).isEqualTo(archive.run());
            assertThat(run.partitionsRead())
                    .as("of the claim and the schemas alone")
                    .isEqualTo(2);
            assertThat(RunDirectory.isInUse(folder)).isFalse();
            int compared = 0;
            for (String topic : archive.topics().all()) {
                for (TopicPartition partition : archive.partitions(topic)) {
                    RecordedRun.Range range = archive.range(partition);
                    assertThat(all(run.read(partition, range.from()), FolderRunIT::place))
                            .as(partition.toString())
                            .isEqualTo(all(archive.read(partition, range.from()), FolderRunIT::place));
                    compared++;
                }
            }
            assertThat(compared).isGreaterThan(5);
        }
    }
}
