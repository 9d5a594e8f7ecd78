package dev.millrace.infra.broker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class BrokerProcessIT {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    @TempDir
    private Path directory;

    @Test
    void shouldKeepWhatWasAcknowledgedWhenItIsKilled() throws Exception {
        int port;
        try (BrokerProcess process = BrokerProcess.start(directory.resolve("data"), BrokerConfig.defaults())) {
            port = process.port();
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", process.bootstrapServers()));
                 KafkaProducer<String, String> producer = new KafkaProducer<>(
                     Map.of("bootstrap.servers", process.bootstrapServers()), new StringSerializer(),
                     new StringSerializer())) {
                admin.createTopics(List.of(new NewTopic("t", 1, (short) 1))).all().get(10, TimeUnit.SECONDS);
                end(admin);
                producer.send(new ProducerRecord<>("t", "v")).get(10, TimeUnit.SECONDS);
            }

            process.kill();

            assertThat(process.isAlive()).isFalse();
        }

        try (BrokerProcess again = BrokerProcess.start(
                 directory.resolve("data"), BrokerConfig.defaults().withPort(port));
             Admin admin = Admin.create(Map.of("bootstrap.servers", again.bootstrapServers()))) {
            assertThat(again.port()).isEqualTo(port);
            assertThat(end(admin)).isEqualTo(1);
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
        assertThat(directory.resolve("data").resolve(".kafka_cleanshutdown")).as("left by an orderly stop").exists();
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

    private static long end(Admin admin) throws Exception {
        return admin.listOffsets(Map.of(PARTITION, OffsetSpec.latest())).all().get(20, TimeUnit.SECONDS)
            .get(PARTITION).offset();
    }
}
