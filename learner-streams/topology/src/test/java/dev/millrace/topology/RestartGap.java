package dev.millrace.topology;

import static dev.millrace.topology.RunOnBroker.await;

import dev.millrace.infra.broker.EmbeddedBroker;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Measures how long nothing comes out while an instance is stopped, or killed, and started again at once on the same state
 * directory, under each rebalance protocol. No test: run it by its name and publish what it prints.
 *
 * <pre>{@code ./mvnw -pl learner-streams/topology -am test -Dtest=RestartGap -Dsurefire.failIfNoSpecifiedTests=false}</pre>
 */
class RestartGap {
    private static final Logger LOG = LoggerFactory.getLogger(RestartGap.class);
    private static final int REPEATS = Integer.getInteger("millrace.gap.repeats", 3);

    @TempDir
    static Path directory;

    private volatile boolean over;

    @Test
    void measure() throws Exception {
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("broker"))) {
            for (RebalanceProtocol protocol : List.of(RebalanceProtocol.CLASSIC, RebalanceProtocol.STREAMS)) {
                measure(broker, protocol);
            }
        }
    }

    private void measure(EmbeddedBroker broker, RebalanceProtocol protocol) throws Exception {
        String name = protocol.name().toLowerCase(Locale.ROOT);
        over = false;
        try (RunOnBroker run = new RunOnBroker(broker, "gap-" + name + ".")) {
            ConcurrentLinkedDeque<Long> arrivals = new ConcurrentLinkedDeque<>();
            Thread feeding = thread("feeding", () -> feed(run));
            Thread watching = thread("watching", () -> watch(run, arrivals));
            Path state = directory.resolve("state-" + name);
            Process process = start(broker, run, state, protocol);
            await("the first trajectories", () -> arrivals.size() > 100);
            for (boolean kill : new boolean[] {false, true}) {
                List<String> gaps = new ArrayList<>();
                for (int i = 0; i < REPEATS; i++) {
                    LockSupport.parkNanos(Duration.ofSeconds(4).toNanos());
                    if (kill) {
                        TopologyProcess.kill(process);
                    } else {
                        process.destroy();
                        process.waitFor(120, TimeUnit.SECONDS);
                    }
                    long last = arrivals.peekLast();
                    long startedMs = System.currentTimeMillis();
                    process = start(broker, run, state, protocol);
                    await(
                            "trajectories after the restart",
                            () -> arrivals.peekLast() > startedMs + 500 && arrivals.peekLast() != last);
                    long first = arrivals.stream()
                            .filter(at -> at > last)
                            .min(Long::compare)
                            .orElseThrow();
                    gaps.add((first - last) + " ms (of them " + (mainMs(state) - startedMs) + " before its main)");
                }
                LOG.warn(
                        "{}, {}: nothing came out for {}",
                        name,
                        kill ? "kill -9" : "clean stop",
                        String.join(", ", gaps));
            }
            TopologyProcess.kill(process);
            over = true;
            feeding.join();
            watching.join();
        }
    }

    private static Process start(EmbeddedBroker broker, RunOnBroker run, Path state, RebalanceProtocol protocol) {
        return TopologyProcess.start(
                broker.bootstrapServers(), run.connection.topics().prefix(), state, "", 16, protocol);
    }

    /** Time at which the newest process printed that it reached main. */
    private static long mainMs(Path state) throws Exception {
        return Files.readAllLines(state.resolveSibling(state.getFileName() + ".log")).stream()
                .filter(line -> line.startsWith(TopologyProcess.MAIN))
                .mapToLong(line -> Long.parseLong(line.substring(TopologyProcess.MAIN.length())))
                .max()
                .orElseThrow();
    }

    private static Thread thread(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.start();
        return thread;
    }

    /** 40 rollouts a second. */
    private void feed(RunOnBroker run) {
        for (long group = 0; !over; group++) {
            for (int i = 0; i < 2; i++) {
                run.sendScored(Samples.rollout("g" + group, i).setReward(i).build());
            }
            LockSupport.parkNanos(50_000_000);
        }
    }

    private void watch(RunOnBroker run, ConcurrentLinkedDeque<Long> arrivals) {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                run.connection.consumer(Map.of(
                        ConsumerConfig.ISOLATION_LEVEL_CONFIG,
                        "read_committed",
                        ConsumerConfig.AUTO_OFFSET_RESET_CONFIG,
                        "earliest")),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
            consumer.assign(List.of(new TopicPartition(run.connection.topics().trajectories(), 0)));
            while (!over) {
                int count = consumer.poll(Duration.ofMillis(20)).count();
                for (int i = 0; i < count; i++) {
                    arrivals.add(System.currentTimeMillis());
                }
            }
        }
    }
}
