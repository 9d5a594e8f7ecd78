package dev.millrace.topology;

import static dev.millrace.topology.RunOnBroker.await;
import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.join.JoinConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The same topics, with every partner that a rollout can have, through one, two and four threads and two instances. Offsets on {@code trajectories} depend on when tasks commit, so
 * pointers are compared by what they point at; everything else is compared byte by byte.
 */
class DeterminismIT {
    private static final int GROUPS = 60;
    private static final int GROUP_SIZE = 4;
    private static final int BATCH = 16;
    /** The same for every run, and not so long ago that the log would delete it. */
    private static final long START_MS = System.currentTimeMillis() - 3_600_000;

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

    /** What one run made of the input, with its topic prefix taken out. */
    private record Made(Map<String, ByteBuffer> trajectories, List<ByteBuffer> batches, List<ByteBuffer> outcomes) {}

    private static <T extends SpecificRecord> Future<RecordMetadata> send(
            RunOnBroker run, String topic, String key, long timeMs, T record, Class<T> type) {
        return run.send(
                topic,
                key,
                timeMs,
                AvroSerde.of(type, run.connection.registry()).serializer().serialize(topic, record));
    }

    /** Rollouts of versions 0 to 8, some of them twice, their scores in another order, and the versions. */
    private static void fill(RunOnBroker run) {
        var topics = run.connection.topics();
        Random random = new Random(5);
        List<Rollout> rollouts = new ArrayList<>();
        List<Future<RecordMetadata>> places = new ArrayList<>();
        List<Future<RecordMetadata>> others = new ArrayList<>();
        for (int i = 0; i < GROUPS * GROUP_SIZE; i++) {
            int group = i / GROUP_SIZE;
            long version = group / 7;
            Rollout rollout = Samples.rollout(
                            "group-" + group,
                            i % GROUP_SIZE,
                            GROUP_SIZE,
                            5 + random.nextInt(40),
                            -random.nextFloat(),
                            version)
                    .setOrdinal(group)
                    .setReward(random.nextInt(3))
                    .build();
            rollouts.add(rollout);
            places.add(send(run, topics.rollouts(), rollout.getGroupId(), timeMs(i), rollout, Rollout.class));
            if (i % 25 == 0) {
                others.add(send(run, topics.rollouts(), rollout.getGroupId(), timeMs(i), rollout, Rollout.class));
            }
            if (i % (7 * GROUP_SIZE) == 0) {
                PolicyVersion made = Samples.version(version, version - 1);
                others.add(send(
                        run,
                        topics.policyVersions(),
                        VersionKey.of(made).toString(),
                        timeMs(i),
                        made,
                        PolicyVersion.class));
            }
        }
        List<Integer> order =
                new ArrayList<>(IntStream.range(0, rollouts.size()).boxed().toList());
        Collections.shuffle(order, random);
        for (int i : order) {
            Score score = score(rollouts.get(i), RunOnBroker.settled(places.get(i)), random);
            others.add(send(
                    run,
                    topics.scores(),
                    score.getGroupId(),
                    timeMs(i) + 500 + random.nextInt(1000),
                    score,
                    Score.class));
            others.add(sendReward(
                    run,
                    rollouts.get(i),
                    RunOnBroker.settled(places.get(i)),
                    timeMs(i) + random.nextInt(1500),
                    random));
            for (PolicyRole role : List.of(PolicyRole.REFERENCE, PolicyRole.TEACHER)) {
                others.add(sendFixed(
                        run,
                        role,
                        rollouts.get(i),
                        RunOnBroker.settled(places.get(i)),
                        timeMs(i) + random.nextInt(1500)));
            }
        }
        others.forEach(RunOnBroker::settled);
    }

    private static Future<RecordMetadata> sendReward(
            RunOnBroker run, Rollout rollout, RecordMetadata at, long timeMs, Random random) {
        Reward reward = Samples.reward(rollout, at.offset())
                .setReward(random.nextInt(3))
                .setRolloutSource(new LogCoordinates(at.topic(), at.partition(), at.offset()))
                .build();
        return send(run, run.connection.topics().rewards(), rollout.getGroupId(), timeMs, reward, Reward.class);
    }

    private static Future<RecordMetadata> sendFixed(
            RunOnBroker run, PolicyRole role, Rollout rollout, RecordMetadata at, long timeMs) {
        Score score = Samples.scoreBy(role, rollout, at.offset())
                .setRolloutSource(new LogCoordinates(at.topic(), at.partition(), at.offset()))
                .build();
        String topic = role == PolicyRole.TEACHER
                ? run.connection.topics().teacherScores()
                : run.connection.topics().referenceScores();
        return send(run, topic, rollout.getGroupId(), timeMs, score, Score.class);
    }

    private static long timeMs(int nth) {
        return START_MS + nth * 40L;
    }

    private static Score score(Rollout rollout, RecordMetadata at, Random random) {
        float[] proximal = new float[rollout.getMask().remaining()];
        for (int t = 0; t < proximal.length; t++) {
            proximal[t] = -random.nextFloat();
        }
        Score score = Samples.score(rollout, at.offset(), proximal)
                .setRolloutSource(new LogCoordinates(at.topic(), at.partition(), at.offset()))
                .build();
        score.getVectors()
                .get(1)
                .put(
                        "version_spans",
                        List.of(new VersionSpan(rollout.getVersionSpans().get(0).getVersion(), 0, proximal.length)));
        return score;
    }

    private static Made make(int instances, int threads) throws Exception {
        String prefix = "made" + instances + "by" + threads + ".";
        try (RunOnBroker run = new RunOnBroker(broker, prefix)) {
            fill(run);
            List<TopologyRunner> runners = IntStream.range(0, instances)
                    .mapToObj(i -> new TopologyRunner(
                            config(threads),
                            Algorithm.defaults(),
                            run.connection,
                            directory.resolve(prefix + i),
                            new SimpleMeterRegistry()))
                    .toList();
            CompletableFuture<Void> ended = CompletableFuture.allOf(runners.stream()
                    .map(runner -> CompletableFuture.runAsync(runner::run, task -> new Thread(task, "runner").start()))
                    .toArray(CompletableFuture[]::new));
            await("all batches of " + prefix, () -> {
                assertThat(ended).isNotDone();
                return run.read(run.connection.topics().batches()).size() == GROUPS * GROUP_SIZE / BATCH;
            });
            runners.forEach(TopologyRunner::stop);
            ended.get(90, TimeUnit.SECONDS);
            Map<String, ByteBuffer> trajectories = new TreeMap<>();
            Map<Long, String> idAt = new HashMap<>();
            run.read(run.connection.topics().trajectories()).forEach(record -> {
                ByteBuffer bytes = without(prefix, record.value());
                String id = AvroSerde.of(dev.millrace.schemas.Trajectory.class, run.connection.registry())
                        .deserializer()
                        .deserialize("", record.value())
                        .getRolloutId();
                idAt.put(record.offset(), id);
                trajectories.put(id, bytes);
            });
            List<ByteBuffer> batches = new ArrayList<>();
            for (LearnerBatch batch : run.read(run.connection.topics().batches(), LearnerBatch.class)) {
                for (BatchEntry entry : batch.getEntries()) {
                    assertThat(idAt).containsEntry(entry.getOffset(), entry.getRolloutId());
                    entry.put("offset", 0L);
                }
                batches.add(without(
                        prefix,
                        AvroSerde.of(LearnerBatch.class, run.connection.registry())
                                .serializer()
                                .serialize("", batch)));
            }
            List<ByteBuffer> outcomes = new ArrayList<>();
            run.read(run.connection.topics().outcomes())
                    .forEach(record -> outcomes.add(without(prefix, record.value())));
            return new Made(trajectories, batches, outcomes.stream().sorted().toList());
        }
    }

    private static TopologyConfig config(int threads) {
        TopologyConfig defaults = TopologyConfig.defaults();
        RuntimeConfig r = defaults.runtime();
        JoinConfig join = defaults.join();
        return new TopologyConfig(
                defaults.ingress(),
                new JoinConfig(
                        true,
                        true,
                        true,
                        join.unscoredAfterMs(),
                        join.orphanAfterMs(),
                        join.maxGapMs(),
                        join.payloadCacheBytes(),
                        join.dedupeRetentionMs(),
                        join.dedupeGroups()),
                defaults.groups(),
                new BatchConfig(BATCH, 0, BatchConfig.Order.SUBMISSION, 0, false),
                new RuntimeConfig(
                        threads,
                        r.commitIntervalMs(),
                        r.maxTaskIdleMs(),
                        r.stateStores(),
                        r.storeCacheBytes(),
                        r.memberCacheBytes(),
                        r.rocksdbBytes(),
                        r.bufferedRecords(),
                        r.standbyReplicas(),
                        r.rebalanceProtocol(),
                        r.sessionTimeoutMs(),
                        r.instanceId(),
                        r.transactionTimeoutMs(),
                        r.compression(),
                        r.startTimeoutMs(),
                        r.stopTimeoutMs(),
                        r.alarmAfterMs()));
    }

    /** The bytes with the prefix in topic names made equally long and alike. */
    private static ByteBuffer without(String prefix, byte[] bytes) {
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        return ByteBuffer.wrap(text.replace(prefix, "#".repeat(prefix.length())).getBytes(StandardCharsets.ISO_8859_1));
    }

    @Test
    void shouldMakeTheSameBytesWithAnyNumberOfThreadsAndInstances() throws Exception {
        Made one = make(1, 1);
        assertThat(one.trajectories()).hasSize(GROUPS * GROUP_SIZE);
        assertThat(one.outcomes()).hasSize(10);
        for (int[] many : new int[][] {{1, 2}, {1, 4}, {2, 1}}) {
            Made other = make(many[0], many[1]);
            String by = many[0] + " instances of " + many[1] + " threads";
            assertThat(other.trajectories()).as("trajectories of %s", by).isEqualTo(one.trajectories());
            assertThat(other.batches()).as("batches of %s", by).isEqualTo(one.batches());
            assertThat(other.outcomes()).as("outcomes of %s", by).isEqualTo(one.outcomes());
        }
    }
}
