package dev.millrace.log.patience;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.log.alarm.Alarms;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryAwayException;
import dev.millrace.schemas.registry.UnknownSchemaException;
import java.time.Duration;
import java.util.Optional;
import org.apache.avro.Schema;
import org.junit.jupiter.api.Test;

class PatientRegistryTest {
    private final Schema schema = Serving.getClassSchema();
    private long nanos;
    private final FailingRegistry below = new FailingRegistry();
    private final SchemaRegistry registry = PatientRegistry.with(
            below,
            () -> new Patience(
                    "the caller",
                    Duration.ofSeconds(10),
                    new Alarms(),
                    Optional::empty,
                    () -> nanos,
                    pause -> nanos += pause.toNanos()));

    @Test
    void shouldAskAgainUntilTheRegistryIsThere() {
        below.failures = 4;

        int id = registry.idOf("serving-value", schema);

        assertThat(registry.byId(id)).isEqualTo(schema);
        assertThat(below.questions).isEqualTo(4 + 1 + 1);
    }

    @Test
    void shouldGiveUpWhenItsPatienceIsOver() {
        below.failures = Integer.MAX_VALUE;

        assertThatThrownBy(() -> registry.byId(7))
                .isInstanceOf(PatienceOverException.class)
                .hasMessageStartingWith("the caller has tried for 10 s (run.patience_seconds=10)")
                .hasMessageContaining("the registry is away");
    }

    @Test
    void shouldNotAskAgainForWhatThereIsNot() {
        assertThatThrownBy(() -> registry.byId(7)).isInstanceOf(UnknownSchemaException.class);
        assertThat(below.questions).isEqualTo(1);
        assertThat(nanos).isZero();
    }

    /** Away for so many questions. */
    private static final class FailingRegistry implements SchemaRegistry {
        private final SchemaRegistry known = new InMemorySchemaRegistry();
        private int failures;
        private int questions;

        private void question() {
            questions++;
            if (failures > 0) {
                failures--;
                throw new SchemaRegistryAwayException("the registry is away", null);
            }
        }

        @Override
        public int idOf(String subject, Schema asked) {
            question();
            return known.idOf(subject, asked);
        }

        @Override
        public Schema byId(int id) {
            question();
            return known.byId(id);
        }

        @Override
        public void close() {
            known.close();
        }
    }
}
