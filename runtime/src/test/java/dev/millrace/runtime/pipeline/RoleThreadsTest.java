package dev.millrace.runtime.pipeline;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.registry.SchemaRegistryUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class RoleThreadsTest {
    private final RoleThreads threads = new RoleThreads(Duration.ofSeconds(150));
    private final List<String> ended = new CopyOnWriteArrayList<>();

    private Role waiting(String name) {
        CountDownLatch stop = new CountDownLatch(1);
        return new Role(
                name,
                () -> {
                    await(stop);
                    ended.add(name);
                },
                stop::countDown);
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(90, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void shouldStopInTheOrderOfStarting() {
        threads.start(waiting("admission"));
        threads.start(waiting("generator"));
        threads.start(waiting("learner"));
        threads.stop();
        assertThat(ended).containsExactly("admission", "generator", "learner");
        assertThat(threads.failure()).isEmpty();
    }

    @Test
    void shouldCallItNoFailureWhereARoleIsStoppedWhileTheSchemaRegistryIsAway() {
        CountDownLatch stop = new CountDownLatch(1);
        threads.start(new Role(
                "generator",
                () -> {
                    await(stop);
                    throw new SchemaRegistryUnavailableException("the registry is away", null);
                },
                stop::countDown));
        threads.stop();
        assertThat(threads.failure()).isEmpty();
    }

    @Test
    void shouldRememberTheFirstFailureAndLetOthersEndInOrder() {
        CountDownLatch failed = new CountDownLatch(1);
        threads.start(waiting("generator"));
        threads.start(new Role(
                "scorer",
                () -> {
                    try {
                        throw new IllegalStateException("no version 3");
                    } finally {
                        failed.countDown();
                    }
                },
                () -> {}));
        await(failed);
        threads.stop();
        assertThat(threads.failure())
                .get()
                .extracting(Throwable::getMessage)
                .isEqualTo("the scorer failed: no version 3");
        assertThat(ended).containsExactly("generator");
    }

    @Test
    void shouldReportARoleThatEndsUnasked() {
        CountDownLatch over = new CountDownLatch(1);
        threads.start(new Role("learner", over::countDown, () -> {}));
        await(over);
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
        while (threads.failure().isEmpty() && System.nanoTime() < deadline) {
            Thread.onSpinWait();
        }
        assertThat(threads.failure())
                .get()
                .extracting(Throwable::getMessage)
                .isEqualTo("the learner failed: ended without a stop request");
    }

    @Test
    void shouldReportEveryRoleThatDoesNotStop() {
        RoleThreads impatient = new RoleThreads(Duration.ofMillis(50));
        CountDownLatch never = new CountDownLatch(1);
        impatient.start(new Role("topology", () -> await(never), () -> {}));
        impatient.start(new Role("learner", () -> await(never), () -> {}));
        impatient.stop();
        assertThat(impatient.failure())
                .get()
                .extracting(Throwable::getMessage)
                .isEqualTo("the topology failed: did not stop within the 0 s that all roles share");
        assertThat(impatient.failure().get().getSuppressed())
                .extracting(Throwable::getMessage)
                .containsExactly("the learner failed: did not stop within the 0 s that all roles share");
        never.countDown();
    }
}
