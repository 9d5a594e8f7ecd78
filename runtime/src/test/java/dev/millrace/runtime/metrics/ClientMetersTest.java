package dev.millrace.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.micrometer.core.instrument.binder.kafka.KafkaClientMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Time;
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
            assertThat(registry.get("kafka.consumer.fetch.manager.records.lag.max")
                            .tag("client.id", "reader")
                            .gauge())
                    .isNotNull();
            assertThat(registry.get("kafka.producer.record.error.total")
                            .tag("client.id", "writer")
                            .functionCounter()
                            .count())
                    .isZero();
            assertThat(registry.getMeters()).hasSizeLessThan(60);
            requireNamesOfTheBinder(new KafkaClientMetrics(consumer), "reader");
            requireNamesOfTheBinder(new KafkaClientMetrics(producer), "writer");
        }
        assertThat(registry.getMeters()).isEmpty();
    }

    /** Name, type and tags. */
    private void requireNamesOfTheBinder(KafkaClientMetrics binder, String client) {
        SimpleMeterRegistry stock = new SimpleMeterRegistry();
        try (binder) {
            binder.bindTo(stock);
            assertThat(stock.getMeters())
                    .extracting(meter -> meter.getId().getType() + " "
                            + meter.getId().getName() + " "
                            + meter.getId().getTags().stream()
                                    .filter(tag -> !tag.getKey().equals("kafka.version"))
                                    .toList())
                    .containsAll(registry.getMeters().stream()
                            .filter(meter -> client.equals(meter.getId().getTag("client.id")))
                            .map(meter -> meter.getId().getType() + " "
                                    + meter.getId().getName() + " "
                                    + meter.getId().getTags())
                            .toList());
        }
    }

    @Test
    void shouldTellAConsumerFromAProducerOfTheSameName() {
        try (var consumer =
                new KafkaConsumer<>(settings("admission"), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            try (var producer =
                    new KafkaProducer<>(settings("admission"), new ByteArraySerializer(), new ByteArraySerializer())) {
                assertThat(producer.metrics()).isNotEmpty();
                assertThat(registry.find("kafka.producer.outgoing.byte.rate").gauge())
                        .isNotNull();
                assertThat(registry.find("kafka.consumer.outgoing.byte.rate").gauge())
                        .isNotNull();
            }
            assertThat(consumer.metrics()).isNotEmpty();
            assertThat(registry.getMeters())
                    .as("one that is closed takes only its own with it")
                    .isNotEmpty()
                    .allMatch(meter -> meter.getId().getName().startsWith("kafka.consumer."));
        }
    }

    /** Kafka's consumers report a topic with periods under underscores too until 5.0, the deprecated name first (KIP-1109). */
    @Test
    void shouldShowThePartitionsLagOnceUnderTheTopicsOwnName() {
        try (ClientMeters meters = new ClientMeters()) {
            meters.configure(Map.of(ClientMeters.REGISTRY, registry));
            for (String topic :
                    List.of("millrace_r_scores", "millrace.r.scores", "no_periods", "no.periods", "alone_1")) {
                meters.metricChange(lag(topic));
            }
            meters.metricChange(lag("millrace_r_scores"));
            assertThat(registry.get("kafka.consumer.fetch.manager.records.lag").gauges())
                    .extracting(gauge -> gauge.getId().getTag("topic"))
                    .containsExactlyInAnyOrder("millrace.r.scores", "no.periods", "alone_1");
        }
    }

    private static KafkaMetric lag(String topic) {
        return new KafkaMetric(
                new Object(),
                new MetricName(
                        "records-lag",
                        "consumer-fetch-manager-metrics",
                        "The latest lag of the partition.",
                        Map.of("client-id", "reader", "topic", topic, "partition", "0")),
                (Gauge<Double>) (config, now) -> 1.0,
                new MetricConfig(),
                Time.SYSTEM);
    }

    @Test
    void shouldRefuseToReportToNothing() {
        try (ClientMeters meters = new ClientMeters()) {
            assertThatThrownBy(() -> meters.configure(Map.of())).hasMessageContaining("millrace.meter.registry");
        }
    }
}
