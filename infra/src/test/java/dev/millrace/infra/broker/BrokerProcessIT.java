package dev.millrace.infra.broker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class BrokerProcessIT {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    /** Given up by the broker soon, so that the end of what the kill left open is not far. */
    private static final Map<String, Object> IN_TRANSACTION =
            Map.of("transactional.id", "killed", "transaction.timeout.ms", 1_000);

    /** The first compiler alone: its process ends before the second one's work pays. */
    private static final List<String> QUICK = List.of("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1");

    @TempDir
    private Path directory;

    @Test
    void shouldKeepWhatWasAcknowledgedAndEndOpenTransactionsWhenItIsKilled() throws Exception {
        int port;
        try (BrokerProcess process = BrokerProcess.start(directory.resolve("data"), BrokerConfig.defaults(), QUICK)) {
            port = process.port();
            createTopic(process);
            produce(process, "acknowledged");
            try (KafkaProducer<String, String> open = producer(process, IN_TRANSACTION)) {
                open.initTransactions();
                open.beginTransaction();
                open.send(new ProducerRecord<>("t", "in no transaction that ends"))
                        .get(90, TimeUnit.SECONDS);

                process.kill();

                open.close(Duration.ZERO);
            }
            assertThat(process.isAlive()).isFalse();
        }

        try (BrokerProcess again = BrokerProcess.start(
                directory.resolve("data"), BrokerConfig.defaults().withPort(port), QUICK)) {
            assertThat(again.port()).isEqualTo(port);
            produce(again, "after");
            assertThat(committed(again, "after")).containsExactly("acknowledged", "after");
        }
    }

    @Test
    void shouldStopInOrderWhenItsInputEnds() {
        ProcessHandle child;
        try (BrokerProcess process = BrokerProcess.start(directory.resolve("data"), BrokerConfig.defaults())) {
            child = ProcessHandle.of(process.pid()).orElseThrow();
            assertThat(child.isAlive()).isTrue();
        }

        assertThat(child.isAlive()).isFalse();
        assertThat(directory.resolve("data").resolve(".kafka_cleanshutdown"))
                .as("left by an orderly stop")
                .exists();
    }

    @Test
    void shouldSyncOnRequestUntilItIsGone() throws Exception {
        try (BrokerProcess process = BrokerProcess.start(directory.resolve("data"), BrokerConfig.defaults(), QUICK)) {
            createTopic(process);
            try (KafkaProducer<String, String> committed = producer(process, IN_TRANSACTION)) {
                committed.initTransactions();
                committed.beginTransaction();
                committed.send(new ProducerRecord<>("t", "of a version"));
                committed.commitTransaction();
            }

            process.sync(List.of("t", "not-there"), "killed");
            process.sync(List.of("t"), "unknown");

            process.kill();
            assertThatThrownBy(() -> process.sync(List.of("t"), "killed"))
                    .isInstanceOf(BrokerException.class)
                    .hasMessageContainingAll("did not sync", "data.log");
        }
    }

    @Test
    void shouldPassOnTheReasonOfTheChild() {
        try (EmbeddedBroker first = EmbeddedBroker.start(directory.resolve("data"))) {
            assertThatThrownBy(() -> BrokerProcess.start(first.directory(), BrokerConfig.defaults()))
                    .isInstanceOf(BrokerException.class)
                    .hasMessage("another broker uses " + first.directory() + "; stop it or choose another directory");
        }
        List<String> tooSmall = List.of("-Xmx1k");
        assertThatThrownBy(() -> BrokerProcess.start(directory.resolve("data"), BrokerConfig.defaults(), tooSmall))
                .isInstanceOf(BrokerException.class)
                .hasMessage("the broker's process ended before it served; its log is " + directory.resolve("data.log"));
    }

    private static void createTopic(BrokerProcess process) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", process.bootstrapServers()))) {
            TestTopic.create(admin, "t");
        }
    }

    private static KafkaProducer<String, String> producer(BrokerProcess process, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", process.bootstrapServers());
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static void produce(BrokerProcess process, String value) throws Exception {
        try (KafkaProducer<String, String> producer = producer(process, Map.of())) {
            producer.send(new ProducerRecord<>("t", value)).get(90, TimeUnit.SECONDS);
        }
    }

    /** The committed records up to this one; the test's limit ends the waiting. */
    private static List<String> committed(BrokerProcess process, String last) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", process.bootstrapServers(), "isolation.level", "read_committed"),
                new StringDeserializer(),
                new StringDeserializer())) {
            consumer.assign(List.of(PARTITION));
            consumer.seekToBeginning(List.of(PARTITION));
            while (!values.contains(last)) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> values.add(record.value()));
            }
        }
        return values;
    }
}
