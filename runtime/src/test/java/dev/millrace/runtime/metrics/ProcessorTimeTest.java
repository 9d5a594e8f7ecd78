package dev.millrace.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.runtime.metrics.ProcessorTime.Used;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ProcessorTimeTest {
    private List<Used> threads = List.of();
    private long processNanos;
    private long clockNanos;
    private final ProcessorTime time =
            new ProcessorTime(() -> threads, () -> processNanos, () -> clockNanos += 1_000_000_000);

    @ParameterizedTest
    @CsvSource({
        "learner, learner-shard-0, learner",
        "broker, data-plane-kafka-request-handler-0, broker",
        "scorer, kafka-producer-network-thread | anything, scorer",
        "main, main, other",
        "step log, step log, other",
        "main, generator-policy-feed, generator",
        "main, kafka-producer-network-thread | generator-generator-0, generator",
        "main, kafka-coordinator-heartbeat-thread | millrace.scorer, scorer",
        "main, millrace.topology-c4b63154-dfa8-49ba-bdee-9f951a5c494d-StreamThread-1, topology",
        "main, kafka-producer-network-thread | millrace.learner-7.topology-c4b6-StreamThread-1-producer, topology",
        "main, generator-host.example.org, generator",
        "main, load generator 1, other",
        "main, '', other"
    })
    void shouldGroupThreadsByTheirRole(String threadGroup, String name, String group) {
        assertThat(ProcessorTime.group(threadGroup, name)).isEqualTo(group);
    }

    @Test
    void shouldAddUpThreadsThatEndAndBegin() {
        threads = List.of(new Used(1, "learner", 50), new Used(2, "learner", 7), new Used(-9, "compiler", 30));
        processNanos = 100;
        assertThat(time.nanos("learner")).isEqualTo(57);
        assertThat(time.nanos("compiler")).isEqualTo(30);
        assertThat(time.nanos("other")).as("100 - 57 - 30").isEqualTo(13);

        threads = List.of(new Used(1, "learner", 60), new Used(3, "scorer", 5), new Used(-9, "compiler", 4));
        processNanos = 125;
        assertThat(time.nanos("learner")).as("thread 2 has ended").isEqualTo(67);
        assertThat(time.nanos("scorer")).isEqualTo(5);
        assertThat(time.nanos("compiler")).as("another thread has the id").isEqualTo(34);
        assertThat(time.nanos("other")).as("125 - 67 - 5 - 34").isEqualTo(19);

        threads = List.of();
        assertThat(time.nanos("learner")).isEqualTo(67);
        assertThat(time.nanos("other")).isEqualTo(19);
    }

    @Test
    void shouldReadTheThreadsOfThisProcess() throws Exception {
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        ProcessorTime here = new ProcessorTime();
        here.bindTo(registry);
        Thread scorer = new Thread(new ThreadGroup("scorer"), () -> {
            synchronized (this) {
                notifyAll();
                try {
                    wait();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        });
        synchronized (this) {
            scorer.start();
            wait();
        }
        assertThat(registry.get(ProcessorTime.METER)
                        .tag("threads", "scorer")
                        .functionCounter()
                        .count())
                .isPositive();
        assertThat(registry.get(ProcessorTime.METER)
                        .tag("threads", "other")
                        .functionCounter()
                        .count())
                .isPositive();
        scorer.interrupt();
        scorer.join();
    }
}
