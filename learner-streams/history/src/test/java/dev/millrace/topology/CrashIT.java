package dev.millrace.topology;

import static dev.millrace.topology.RunOnBroker.await;
import static dev.millrace.topology.RunOnBroker.settled;
import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.replay.AsRecorded;
import dev.millrace.replay.TaskVerdict;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Instances of the topology are killed while records flow; afterwards every record must be accounted for exactly once. */
class CrashIT {
    private static final int GROUPS = 240;
    private static final int GROUP_SIZE = 4;
    private static final int BATCH = 16;
    private static final int JOINS = 4;
    /** Groups before the first kill, the second, the end: where a start takes long, records wait for the kill among them. */
    private static final int[] FED_BEFORE_KILL = {GROUPS / 2, GROUPS - 20, GROUPS};

    @TempDir
    static Path directory;

    private static EmbeddedBroker broker;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory.resolve("broker"));
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    /** Rollouts, delayed scores, repetitions and garbage, at a steady rate. */
    private static void feed(RunOnBroker run, AtomicInteger fed, AtomicInteger kills) {
        List<Rollout> unscored = new ArrayList<>();
        List<RecordMetadata> places = new ArrayList<>();
        for (int g = 0; g < GROUPS; g++) {
            while (g >= FED_BEFORE_KILL[kills.get()]) {
                LockSupport.parkNanos(5_000_000);
            }
            for (int i = 0; i < GROUP_SIZE; i++) {
                Rollout rollout = Samples.rollout("group-" + g, i, GROUP_SIZE, 50, -1f, 3)
                        .setReward(i % 2)
                        .build();
                places.add(settled(run.send(rollout)));
                unscored.add(rollout);
            }
            if (g % 10 == 0) {
                settled(run.send(unscored.get(unscored.size() - 1)));
                settled(run.send(
                        run.connection.topics().rollouts(), "group-" + g, "garbage".getBytes(StandardCharsets.UTF_8)));
                settled(run.send(run.connection.topics().scores(), "group-" + g, new byte[] {0, 0, 0, 0, 1}));
            }
            while (unscored.size() > (g == GROUPS - 1 ? 0 : 40)) {
                settled(run.send(run.scoreAt(unscored.remove(0), places.remove(0))));
            }
            fed.set(g + 1);
            LockSupport.parkNanos(50_000_000);
        }
    }

    @Test
    void shouldAccountForEveryRecordOnceWhateverIsKilled() throws Exception {
        try (RunOnBroker run = new RunOnBroker(broker, "crash.")) {
            AtomicInteger fed = new AtomicInteger();
            AtomicInteger kills = new AtomicInteger();
            CompletableFuture<Void> feeding = CompletableFuture.runAsync(() -> feed(run, fed, kills));
            Process process = null;
            for (int kill = 1; kill <= 2; kill++) {
                // an empty state directory every time: everything has to come back from the log
                process = TopologyProcess.start(
                        broker.bootstrapServers(), "crash.", directory.resolve("state-" + kill), "one", BATCH);
                int batches = run.read(run.connection.topics().batches()).size();
                int joined = run.read(run.connection.topics().trajectories()).size();
                await(
                        "batches after start " + kill,
                        () -> run.read(run.connection.topics().batches()).size() > batches + 3);
                // what is killed before it has committed anything has not begun
                await("trajectories of every join after start " + kill, () -> joins(run, joined) == JOINS);
                TopologyProcess.kill(process);
                assertThat(fed.get()).as("the kill came while records flowed").isLessThan(GROUPS);
                kills.set(kill);
            }
            process = TopologyProcess.start(
                    broker.bootstrapServers(), "crash.", directory.resolve("state-last"), "one", BATCH);
            feeding.get(120, TimeUnit.SECONDS);
            await(
                    "all batches",
                    () -> run.read(run.connection.topics().batches()).size() >= GROUPS * GROUP_SIZE / BATCH);
            await(
                    "all repetitions",
                    () -> run.read(run.connection.topics().outcomes()).size() >= GROUPS / 10);
            await(
                    "all garbage",
                    () -> run.read(run.connection.topics().deadLetters()).size() >= 2 * GROUPS / 10);
            process.destroy();
            assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();

            requireExact(run);
            requireReplay(run);
        }
    }

    /** Returns the number of join partitions with a trajectory after the first {@code after} ones. */
    private static long joins(RunOnBroker run, int after) {
        return run.read(run.connection.topics().trajectories(), Trajectory.class).stream()
                .skip(after)
                .map(trajectory -> trajectory.getRolloutSource().getPartition())
                .distinct()
                .count();
    }

    /** The log of the killed instances explains all their and their successors' records byte for byte. */
    private static void requireReplay(RunOnBroker run) throws InterruptedException {
        try (LiveRun recorded = new LiveRun(run.connection, Optional.empty())) {
            List<TaskVerdict> verdicts = new AsRecorded(
                            recorded,
                            TopologyProcess.config("one", BATCH),
                            Algorithm.defaults(),
                            MillraceTopology.maxValueBytes(run.connection))
                    .replay(2);
            assertThat(verdicts).allMatch(TaskVerdict::isProved);
            assertThat(verdicts).as("tasks began again after each kill").allMatch(verdict -> verdict.beginnings() >= 3);
            assertThat(verdicts.stream()
                            .mapToLong(v -> v.same()
                                    .getOrDefault(run.connection.topics().trajectories(), 0L))
                            .sum())
                    .isEqualTo(GROUPS * GROUP_SIZE);
        }
    }

    private static void requireExact(RunOnBroker run) {
        var topics = run.connection.topics();
        List<LearnerBatch> batches = run.read(topics.batches(), LearnerBatch.class);
        assertThat(batches)
                .extracting(LearnerBatch::getBatchId)
                .containsExactlyElementsOf(java.util.stream.LongStream.range(0, GROUPS * GROUP_SIZE / BATCH)
                        .boxed()
                        .toList());

        Map<Long, ConsumerRecord<byte[], byte[]>> trajectories = new HashMap<>();
        run.read(topics.trajectories()).forEach(record -> trajectories.put(record.offset(), record));
        assertThat(trajectories).hasSize(GROUPS * GROUP_SIZE);
        List<String> trained = new ArrayList<>();
        for (LearnerBatch batch : batches) {
            for (BatchEntry entry : batch.getEntries()) {
                trained.add(entry.getRolloutId());
                Trajectory trajectory = AvroSerde.of(Trajectory.class, run.connection.registry())
                        .deserializer()
                        .deserialize(
                                topics.trajectories(),
                                trajectories.get(entry.getOffset()).value());
                assertThat(trajectory.getRolloutId()).isEqualTo(entry.getRolloutId());
            }
        }
        assertThat(trained).doesNotHaveDuplicates().hasSize(GROUPS * GROUP_SIZE);
        assertThat(run.read(topics.outcomes(), Outcome.class))
                .hasSize(GROUPS / 10)
                .allMatch(outcome -> outcome.getReason().equals("duplicate"))
                .extracting(outcome -> outcome.getSource().getPartition() + "@"
                        + outcome.getSource().getOffset())
                .doesNotHaveDuplicates();
        assertThat(run.read(topics.deadLetters()))
                .hasSize(2 * GROUPS / 10)
                .extracting(CrashIT::source)
                .doesNotHaveDuplicates();
    }

    private static String source(ConsumerRecord<byte[], byte[]> deadLetter) {
        StringBuilder source = new StringBuilder();
        for (String part : List.of("topic", "partition", "offset")) {
            source.append(new String(
                            deadLetter
                                    .headers()
                                    .lastHeader("millrace.error.source." + part)
                                    .value(),
                            StandardCharsets.UTF_8))
                    .append(' ');
        }
        return source.toString();
    }
}
