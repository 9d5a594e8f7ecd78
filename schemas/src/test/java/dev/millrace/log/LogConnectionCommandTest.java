package dev.millrace.log;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.util.Map;
import org.junit.jupiter.api.Test;

class LogConnectionCommandTest {
    @Test
    void shouldNameACommandThatFindsTheRun() {
        assertThat(connection("millrace.r1.").command("repair"))
                .isEqualTo("millrace repair --bootstrap-servers kafka:9092 --run r1");
        assertThat(connection("own.").command("repair"))
                .isEqualTo("millrace repair --bootstrap-servers kafka:9092 --topic-prefix own.");
        assertThat(connection("own.").reachedBy("--run-dir runs/r1").command("rollback --to-version 3"))
                .isEqualTo("millrace rollback --to-version 3 --run-dir runs/r1");
    }

    private static LogConnection connection(String prefix) {
        return new LogConnection(
                Map.of("bootstrap.servers", "kafka:9092"),
                new RunTopics(prefix),
                new RunIdentity("r1", 0, "policy"),
                new InMemorySchemaRegistry());
    }
}
