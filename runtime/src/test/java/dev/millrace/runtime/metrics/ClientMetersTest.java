package dev.millrace.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.Test;

class ClientMetersTest {
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    private Map<String, Object> settings(String clientId) {
        Map<String, Object> settings = new HashMap<>(ClientMeters.reportingTo(registry, Map.of("client.id", clientId)));
        settings.put("bootstrap.servers", "127.0.0.1:1"); // nothing is sent, so nothing need listen
        return settings;
    }

    @Test
    void shouldShowAClientsMetersAsLongAsItLives() {
        try (var consumer = new KafkaConsumer<>(
                        settings("reader"), new ByteArrayDeserializer(), new ByteArrayDeserializer());
                var producer =
                        new KafkaProducer<>(settings("writer"), new ByteArraySerializer(), new ByteArraySerializer())) {
            assertThat(consumer.metrics()).isNotEmpty();
            assertThat(producer.metrics()).isNotEmpty();
            assertThat(registry.get("millrace.kafka.records.lag.max")
                            .tag("client", "reader")
                            .gauge())
                    .isNotNull();
            assertThat(registry.get("millrace.kafka.record.error")
                            .tag("client", "writer")
                            .functionCounter()
                            .count())
                    .isZero();
            assertThat(registry.get("millrace.kafka.fetch.latency.avg")
                            .gauge()
                            .getId()
                            .getBaseUnit())
                    .isEqualTo("seconds");
            assertThat(registry.get("millrace.kafka.txn.commit.time")
                            .functionCounter()
                            .getId()
                            .getBaseUnit())
                    .isEqualTo("seconds");
            assertThat(registry.getMeters()).hasSizeLessThan(35);
        }
        assertThat(registry.getMeters()).isEmpty();
    }

    @Test
    void shouldTellAConsumerFromAProducerOfTheSameName() {
        try (var consumer =
                new KafkaConsumer<>(settings("admission"), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            try (var producer =
                    new KafkaProducer<>(settings("admission"), new ByteArraySerializer(), new ByteArraySerializer())) {
                assertThat(producer.metrics()).isNotEmpty();
                assertThat(registry.find("millrace.kafka.outgoing.byte.rate").gauges())
                        .extracting(gauge -> gauge.getId().getTag("kind"))
                        .containsExactlyInAnyOrder("consumer", "producer");
            }
            assertThat(consumer.metrics()).isNotEmpty();
            assertThat(registry.find("millrace.kafka.outgoing.byte.rate").gauges())
                    .as("one that is closed takes only its own with it")
                    .extracting(gauge -> gauge.getId().getTag("kind"))
                    .containsExactly("consumer");
        }
    }

    @Test
    void shouldRefuseToReportToNothing() {
        try (ClientMeters meters = new ClientMeters()) {
            assertThatThrownBy(() -> meters.configure(Map.of())).hasMessageContaining("millrace.meter.registry");
        }
    }
}
