package dev.millrace.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.millrace.schemas.Serving;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryUnavailableException;
import dev.millrace.schemas.registry.UnknownSchemaException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.apache.avro.Schema;
import org.junit.jupiter.api.Test;

class RetryingRegistryTest {
    private final Schema schema = Serving.getClassSchema();
    private long nanos;
    private final FailingRegistry below = new FailingRegistry();
    private final SchemaRegistry registry = RetryingRegistry.with(
            below,
            () -> new Patience(
                    "the caller",
                    Duration.ofSeconds(10),
                    new Alarms(),
                    Optional::empty,
                    () -> nanos,
                    pause -> nanos += pause.toNanos()),
            new CountDownLatch(1));

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
                .hasMessageStartingWith("the caller has retried for 10 s (run.patience_seconds=10)")
                .hasMessageContaining("the registry is away");
    }

    @Test
    void shouldWaitNoLongerOnceTheProcessIsAskedToStop() throws InterruptedException {
        below.failures = Integer.MAX_VALUE;
        RetryingRegistry patient =
                (RetryingRegistry) RetryingRegistry.over(below, Duration.ofMinutes(10), new Alarms());
        CompletableFuture<Throwable> ended = new CompletableFuture<>();
        Thread asks = new Thread(() -> ended.complete(catchThrowable(() -> patient.byId(7))));
        asks.start();

        patient.stopWaiting();

        assertThat(ended.join())
                .isInstanceOf(SchemaRegistryUnavailableException.class)
                .hasMessage("the registry is away");
        assertThatThrownBy(() -> patient.byId(8)).isInstanceOf(SchemaRegistryUnavailableException.class);
        asks.join();
    }

    @Test
    void shouldNotAskAgainForWhatThereIsNot() {
        assertThatThrownBy(() -> registry.byId(7)).isInstanceOf(UnknownSchemaException.class);
        assertThat(below.questions).isEqualTo(1);
        assertThat(nanos).isZero();
    }

    /** Does not answer the given number of questions. */
    private static final class FailingRegistry implements SchemaRegistry {
        private final SchemaRegistry known = new InMemorySchemaRegistry();
        private int failures;
        private int questions;

        private void question() {
            questions++;
            if (failures > 0) {
                failures--;
                throw new SchemaRegistryUnavailableException("the registry is away", null);
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
