package dev.millrace.log;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.util.Map;
import org.junit.jupiter.api.Test;

class LogConnectionSecretsTest {
    @Test
    void shouldGiveSecretsToClientsAndShowThemToNobody() {
        LogConnection connection = new LogConnection(
                Map.of(
                        "bootstrap.servers",
                        "kafka:9092",
                        "ssl.key.password",
                        "hunter2",
                        "producer.ssl.key.password",
                        "hunter2"),
                new RunTopics("a."),
                new RunIdentity("a", 0, "policy"),
                new InMemorySchemaRegistry());
        assertThat(connection.consumer(Map.of())).containsEntry("ssl.key.password", "hunter2");
        assertThat(connection.toString()).contains("kafka:9092", "[hidden]").doesNotContain("hunter2");
    }
}
