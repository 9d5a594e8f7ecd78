package dev.millrace.infra.broker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.internals.Exit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class EmbeddedBrokerIT {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    @TempDir
    private Path directory;

    @Test
    void shouldKeepCommittedRecordsAndOffsetsOverARestartOnAnotherPort() throws Exception {
        String first;
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory)) {
            first = broker.bootstrapServers();
            createTopic(broker);
            try (KafkaProducer<String, String> producer = producer(broker);
                    KafkaConsumer<String, String> group = consumer(broker)) {
                producer.initTransactions();
                commit(producer, group, "committed", 17);
                producer.beginTransaction();
                producer.send(new ProducerRecord<>("t", "k", "aborted")).get(90, TimeUnit.SECONDS);
                producer.abortTransaction();
            }
        }

        try (EmbeddedBroker broker = EmbeddedBroker.start(directory);
                Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
            assertThat(broker.bootstrapServers()).isNotEqualTo(first);
            assertThat(readCommitted(broker)).containsExactly("committed");
            assertThat(committedOffset(admin)).isEqualTo(17);
            assertThat(broker.failure().toCompletableFuture()).isNotDone();
        }
    }

    @Test
    void shouldListenOnTheGivenPortAndGiveItBack() throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        BrokerConfig config = new BrokerConfig(port, 16 << 20, 0, 60_000, 20_000, Durability.VERSIONS);

        for (int round = 0; round < 2; round++) {
            try (EmbeddedBroker broker = EmbeddedBroker.start(directory, config)) {
                assertThat(broker.bootstrapServers()).isEqualTo("127.0.0.1:" + port);
            }
        }
    }

    @Test
    void shouldLoseNothingThatWasSyncedWhenThePowerIsCut() throws Exception {
        Path after = directory.resolve("after");
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("before"));
                KafkaProducer<String, String> producer = producer(broker);
                KafkaConsumer<String, String> group = consumer(broker)) {
            createTopic(broker);
            producer.initTransactions();
            commit(producer, group, "synced", 17);

            Map<TopicPartition, Long> onDisk = broker.sync(List.of("t", "not-there"), "tx");

            commit(producer, group, "later", 18);
            cutPower(broker.directory(), onDisk, after);
        }

        try (EmbeddedBroker broker = EmbeddedBroker.start(after);
                KafkaProducer<String, String> next = producer(broker);
                Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
            next.initTransactions(); // waits until what was to be committed is
            assertThat(readCommitted(broker)).containsExactly("synced");
            assertThat(committedOffset(admin)).isEqualTo(17);
        }
    }

    private static void commit(
            KafkaProducer<String, String> producer, KafkaConsumer<String, String> group, String value, long offset) {
        producer.beginTransaction();
        producer.send(new ProducerRecord<>("t", "k", value));
        producer.sendOffsetsToTransaction(Map.of(PARTITION, new OffsetAndMetadata(offset)), group.groupMetadata());
        producer.commitTransaction();
    }

    /** Copies a broker's directory as a disk has it that synced only up to {@code ends}. */
    private static void cutPower(Path broker, Map<TopicPartition, Long> ends, Path copy) throws IOException {
        try (Stream<Path> files = Files.walk(broker)) {
            for (Path file : files.toList()) {
                Path target = copy.resolve(broker.relativize(file).toString());
                Files.copy(file, target);
                String partition = file.getParent().getFileName().toString();
                if (file.toString().endsWith(".log") && !partition.startsWith("__cluster_metadata")) {
                    cut(target, end(ends, partition));
                }
            }
        }
    }

    private static long end(Map<TopicPartition, Long> ends, String partition) {
        return ends.entrySet().stream()
                .filter(end -> end.getKey().toString().equals(partition))
                .mapToLong(Map.Entry::getValue)
                .sum();
    }

    private static void cut(Path log, long end) throws IOException {
        try (FileRecords records = FileRecords.open(log.toFile())) {
            int size = 0;
            for (FileChannelRecordBatch batch : records.batches()) {
                size = batch.lastOffset() < end ? batch.position() + batch.sizeInBytes() : size;
            }
            records.truncateTo(size);
        }
    }

    private static long committedOffset(Admin admin) throws Exception {
        return admin.listConsumerGroupOffsets("g")
                .partitionsToOffsetAndMetadata()
                .get(90, TimeUnit.SECONDS)
                .get(PARTITION)
                .offset();
    }

    @Test
    void shouldSayThatThePortIsTaken() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            BrokerConfig config =
                    new BrokerConfig(taken.getLocalPort(), 16 << 20, 0, 60_000, 20_000, Durability.VERSIONS);

            assertThatThrownBy(() -> EmbeddedBroker.start(directory, config))
                    .isInstanceOf(BrokerException.class)
                    .hasMessage("the broker cannot listen on 127.0.0.1:" + taken.getLocalPort()
                            + ": Address already in use; set broker.port to another number, or to 0 for any free one");
        }
    }

    @Test
    void shouldSayThatTheDirectoryIsInUse() {
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory)) {
            assertThatThrownBy(() -> EmbeddedBroker.start(broker.directory()))
                    .isInstanceOf(BrokerException.class)
                    .hasMessage("another broker uses " + directory + "; stop it or choose another directory");
            assertThat(broker.failure().toCompletableFuture()).isNotDone();
        }
    }

    @Test
    void shouldSayThatTheDirectoryCannotBeWritten() throws Exception {
        Path file = Files.createFile(directory.resolve("file"));

        assertThatThrownBy(() -> EmbeddedBroker.start(file.resolve("broker")))
                .isInstanceOf(BrokerException.class)
                .hasMessageStartingWith("cannot write the broker's data to " + file.resolve("broker"))
                .hasMessageEndingWith("; choose another directory");
    }

    @Test
    void shouldSayThatThereIsNoSpace() {
        BrokerConfig config = new BrokerConfig(0, 16 << 20, 1L << 60, 60_000, 20_000, Durability.VERSIONS);

        assertThatThrownBy(() -> EmbeddedBroker.start(directory, config))
                .isInstanceOf(BrokerException.class)
                .hasMessageContaining("no space for the broker's data in " + directory)
                .hasMessageContaining("at least " + (1L << 40) + " MiB are needed");
    }

    @Test
    void shouldReportAFatalFaultInPlaceOfEndingTheProcess() {
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory)) {
            Exit.halt(1, "all log dirs have failed"); // what Kafka calls when it cannot write any more

            assertThat(broker.failure().toCompletableFuture())
                    .isCompletedWithValueMatching(e -> e.getMessage()
                                    .startsWith("the broker in " + directory
                                            + " cannot go on: Kafka asked to end the process with status 1, "
                                            + "all log dirs have failed; ")
                            && e.getMessage().endsWith(" MiB are free on its disk"));
        }
    }

    @Test
    void shouldRunTwoBrokersBesideEachOther() throws Exception {
        try (EmbeddedBroker one = EmbeddedBroker.start(directory.resolve("one"));
                EmbeddedBroker two = EmbeddedBroker.start(directory.resolve("two"))) {
            createTopic(one);

            try (Admin admin = Admin.create(Map.of("bootstrap.servers", two.bootstrapServers()))) {
                assertThat(admin.listTopics().names().get(90, TimeUnit.SECONDS)).isEmpty();
            }
        }
    }

    private static void createTopic(EmbeddedBroker broker) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
            TestTopic.create(admin, "t");
        }
    }

    private static KafkaProducer<String, String> producer(EmbeddedBroker broker) {
        return new KafkaProducer<>(
                Map.of(
                        "bootstrap.servers",
                        broker.bootstrapServers(),
                        "transactional.id",
                        "tx",
                        "max.in.flight.requests.per.connection",
                        1),
                new StringSerializer(),
                new StringSerializer());
    }

    private static List<String> readCommitted(EmbeddedBroker broker) {
        try (KafkaConsumer<String, String> consumer = consumer(broker)) {
            consumer.assign(List.of(PARTITION));
            consumer.seekToBeginning(List.of(PARTITION));
            long end = consumer.endOffsets(List.of(PARTITION), Duration.ofSeconds(90))
                    .get(PARTITION);
            List<String> values = new ArrayList<>();
            while (consumer.position(PARTITION, Duration.ofSeconds(90)) < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
            }
            return values;
        }
    }

    private static KafkaConsumer<String, String> consumer(EmbeddedBroker broker) {
        return new KafkaConsumer<>(
                Map.of(
                        "bootstrap.servers",
                        broker.bootstrapServers(),
                        "group.id",
                        "g",
                        "enable.auto.commit",
                        "false",
                        "isolation.level",
                        "read_committed"),
                new StringDeserializer(),
                new StringDeserializer());
    }
}
