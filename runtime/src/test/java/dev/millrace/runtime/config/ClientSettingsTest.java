package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ClientSettingsTest {

    private static LogConnection connection(Map<String, String> settings) {
        Map<String, Object> client = new HashMap<>(ClientSettings.expand(settings));
        client.put("bootstrap.servers", "a:1");
        return new LogConnection(
                client, new RunTopics("t."), new RunIdentity("r", 0, "p"), new InMemorySchemaRegistry());
    }

    @Test
    void shouldGoOverWhatRolesSetAndOnlyToThoseWhoKnowTheName() {
        LogConnection connection = connection(Map.of(
                "compression.type",
                "zstd",
                "consumer.max.poll.records",
                "7",
                "security.protocol",
                "SSL",
                "producer.security.protocol",
                "SASL_SSL",
                "streams.poll.ms",
                "9",
                "plugin.my.reporter.url",
                "http://x"));
        assertThat(connection.producer(Map.of("compression.type", "lz4", "linger.ms", 0)))
                .containsEntry("compression.type", "zstd")
                .containsEntry("linger.ms", 0)
                .containsEntry("security.protocol", "SASL_SSL")
                .containsEntry("bootstrap.servers", "a:1")
                .containsEntry("my.reporter.url", "http://x")
                .doesNotContainKey("max.poll.records")
                .doesNotContainKey("consumer.max.poll.records");
        assertThat(connection.consumer(Map.of("max.poll.records", 500)))
                .containsEntry("max.poll.records", "7")
                .containsEntry("security.protocol", "SSL");
        assertThat(connection.admin()).containsEntry("security.protocol", "SSL").doesNotContainKey("streams.poll.ms");
        assertThat(connection.streams(Map.of("poll.ms", 100, "producer.compression.type", "lz4")))
                .containsEntry("poll.ms", "9")
                .containsEntry("producer.compression.type", "zstd")
                .containsEntry("consumer.max.poll.records", "7")
                .containsEntry("producer.security.protocol", "SASL_SSL");
    }

    @Test
    void shouldRefuseWhatExactlyOnceRestsOnByName() {
        for (String key : new String[] {
            "isolation.level",
            "consumer.isolation.level",
            "producer.acks",
            "producer.transactional.id",
            "streams.processing.guarantee",
            "streams.main.consumer.group.id",
            "consumer.enable.auto.commit"
        }) {
            assertThatThrownBy(() -> ClientSettings.check(Map.of(key, "x")))
                    .as(key)
                    .isInstanceOf(ConfigException.class)
                    .hasMessageContaining("kafka." + key + " must not be set")
                    .hasMessageContaining("depends on it; leave it out");
        }
        assertThatThrownBy(() -> ClientSettings.check(Map.of("streams.num.stream.threads", "2")))
                .hasMessageContaining("topology.runtime.threads");
        assertThatThrownBy(() -> ClientSettings.check(Map.of("bootstrap.servers", "a:1")))
                .hasMessageContaining("run.bootstrap_servers");
    }

    @Test
    void shouldRefuseWhatKafkaDoesNotKnowAndNameTheNearest() {
        assertThatThrownBy(() -> ClientSettings.check(Map.of("consumer.fetch.max.byte", "1")))
                .hasMessageContaining("did you mean kafka.consumer.fetch.max.bytes?")
                .hasMessageContaining("kafka.plugin.");
        assertThatThrownBy(() -> ClientSettings.check(Map.of("security.protocl", "SSL")))
                .hasMessageContaining("did you mean kafka.security.protocol?");
        assertThatThrownBy(() -> ClientSettings.check(Map.of("producer.max.poll.records", "1")))
                .hasMessageContaining("producer knows");
        ClientSettings.check(Map.of(
                "security.protocol",
                "SSL",
                "streams.main.consumer.fetch.max.bytes",
                "1",
                "streams.restore.consumer.max.poll.records",
                "1",
                "plugin.anything",
                "1",
                "ssl.keystore.location",
                "/a"));
    }
}
