package dev.millrace.replay.archive;

import static dev.millrace.topology.RunOnBroker.await;
import static dev.millrace.topology.RunOnBroker.settled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicSettings;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.AsRecorded;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.RewardTopic;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.TaskVerdict;
import dev.millrace.replay.WhatIf;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.topology.MillraceTopology;
import dev.millrace.topology.RunOnBroker;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A run is exported, replayed from its files, imported into another cluster, and replayed there. */
class ArchiveIT {
    private static final int GROUPS = 12;
    private static final int GROUP_SIZE = 4;

    @TempDir
    Path directory;

    private static TopologyConfig config() {
        TopologyConfig defaults = TopologyConfig.defaults();
        return new TopologyConfig(
                defaults.ingress(),
                defaults.join(),
                defaults.groups(),
                new BatchConfig(16, 0, BatchConfig.Order.COMPLETION, 0, false),
                defaults.runtime());
    }

    private void stream(RunOnBroker run) throws Exception {
        for (long version = 0; version <= 4; version++) {
            settled(run.send(
                    run.connection.topics().policyVersions(),
                    "policy/2/" + version,
                    Samples.version(version),
                    PolicyVersion.class));
        }
        TopologyRunner runner = new TopologyRunner(
                config(), Algorithm.defaults(), run.connection, directory.resolve("state"), new SimpleMeterRegistry());
        CompletableFuture<Void> ended = CompletableFuture.runAsync(runner::run);
        for (int g = 0; g < GROUPS; g++) {
            for (int i = 0; i < GROUP_SIZE; i++) {
                Rollout rollout = Samples.rollout("group-" + g, i, GROUP_SIZE, 30, -1f, 3)
                        .setOrdinal(g)
                        .setReward(i % 3)
                        .build();
                run.sendScored(rollout);
                if (g % 8 == 0 && i == 0) {
                    settled(run.send(rollout));
                    settled(run.send(
                            run.connection.topics().rollouts(),
                            "group-" + g,
                            "garbage".getBytes(StandardCharsets.UTF_8)));
                }
            }
        }
        await("all batches", () -> run.read(run.connection.topics().batches()).size() == GROUPS * GROUP_SIZE / 16);
        runner.stop();
        ended.get(90, TimeUnit.SECONDS);
    }

    private static void requireReplay(RecordedRun run, int maxValueBytes) throws InterruptedException {
        List<TaskVerdict> verdicts = new AsRecorded(run, config(), Algorithm.defaults(), maxValueBytes).replay(2);
        assertThat(verdicts).hasSize(5).allMatch(TaskVerdict::isProved);
        assertThat(verdicts.get(4).same()).containsEntry(run.topics().batches(), (long) GROUPS * GROUP_SIZE / 16);
    }

    /** Some batches with their dependencies: other corrections can be tried, and the index lists the content. */
    private void requireRange(LiveRun live) throws InterruptedException {
        Path folder = directory.resolve("range");
        new RunExport(live)
                .to(
                        folder,
                        new RangeSelection(live, WeightsConfig.defaults())
                                .select(batch -> batch.getBatchId() == 1, Long.MIN_VALUE, Long.MAX_VALUE));
        try (ArchivedRun archive = new ArchivedRun(folder)) {
            archive.verify();
            assertThat(archive.isWhole()).isFalse();
            assertThat(archive.held()).contains(new HeldRange(1, 1, 4, 4, -1, -1, -1, -1, ""));
            assertThat(archive.partitions(archive.topics().outcomes())).isEmpty();
            List<ReplayedStep> steps = new ArrayList<>();
            new WhatIf(archive, StepRange.ALL, List.of(new Alternative("recorded", Algorithm.defaults())))
                    .replay(2, steps::add);
            assertThat(steps).hasSize(1).allMatch(ReplayedStep::isAsRecorded);
        }
        assertThatThrownBy(() -> new RangeSelection(live, WeightsConfig.defaults())
                        .select(batch -> false, Long.MIN_VALUE, Long.MAX_VALUE))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("the range has no batch of the run");
    }

    private static void requireSameRecords(RecordedRun one, RecordedRun other) {
        for (String topic : one.topics().all()) {
            for (TopicPartition partition :
                    topic.equals(one.topics().run()) ? List.<TopicPartition>of() : one.partitions(topic)) {
                try (RecordCursor a = one.read(partition, 0);
                        RecordCursor b = other.read(partition, 0)) {
                    for (Optional<ConsumerRecord<byte[], byte[]>> next = a.next(); next.isPresent(); next = a.next()) {
                        ConsumerRecord<byte[], byte[]> same = b.next().orElseThrow();
                        assertThat(same.offset())
                                .as(partition.toString())
                                .isEqualTo(next.get().offset());
                        assertThat(same.timestamp()).isEqualTo(next.get().timestamp());
                        assertThat(same.key()).isEqualTo(next.get().key());
                        assertThat(same.value()).isEqualTo(next.get().value());
                        assertThat(same.headers()).isEqualTo(next.get().headers());
                    }
                    assertThat(b.next()).isEmpty();
                }
            }
        }
    }

    /**
     * Reads a topic outside the run together with it, and requires that {@code hasGrown} still refers only to the run.
     */
    private static void requireAnotherTopic(EmbeddedBroker broker, RunOnBroker run, LiveRun live) throws Exception {
        String topic = "verdicts-of-others";
        assertThat(live.alsoRead(topic)).isFalse();
        try (TopicAdministration administration = new TopicAdministration(
                Map.of("bootstrap.servers", broker.bootstrapServers()), TopicsConfig.defaults())) {
            administration.prepare(List.of(new TopicSettings(topic, 2, Map.of())));
        }
        settled(run.send(topic, "g", reward("group-0/0", 2.5), Reward.class));
        settled(run.send(topic, "g", reward("group-0/1", 0.5), Reward.class));

        RewardTopic rewards = RewardTopic.read(live, topic);

        assertThat(live.partitions(topic)).hasSize(2);
        Trajectory rollout = Trajectory.newBuilder(new SyntheticRollouts(1).next())
                .setRolloutId("group-0/0")
                .build();
        assertThat(rewards.verify(rollout).reward()).isEqualTo(2.5);
        settled(run.send(topic, "g", reward("group-0/2", 1), Reward.class));
        assertThat(live.hasGrown()).isFalse();
        settled(run.send(Samples.rollout("group-0", 0, GROUP_SIZE, 30, -1f, 3).build()));
        assertThat(live.hasGrown()).isTrue();
    }

    private static Reward reward(String rollout, double reward) {
        return Reward.newBuilder()
                .setRunId(Samples.RUN.runId())
                .setEpoch(Samples.RUN.epoch())
                .setRolloutId(rollout)
                .setGroupId("g")
                .setRewarderId("others")
                .setRolloutSource(new LogCoordinates("rollouts", 0, 0L))
                .setReward(reward)
                .setRewardComponents(Map.of())
                .setScoredAtMs(0)
                .build();
    }

    @Test
    void shouldKeepARunThroughFilesAndAnotherCluster() throws Exception {
        Path folder = directory.resolve("archive");
        int maxValueBytes;
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("one"));
                RunOnBroker run = new RunOnBroker(broker, "kept.")) {
            stream(run);
            maxValueBytes = MillraceTopology.maxValueBytes(run.connection);
            try (LiveRun live = new LiveRun(run.connection, Optional.of("run: {}"))) {
                RunExport export = new RunExport(live);
                export.to(folder, export.everythingBut(Set.of()));
                try (ArchivedRun archive = new ArchivedRun(folder)) {
                    archive.verify();
                    assertThat(archive.isWhole()).isTrue();
                    assertThat(archive.configuration()).contains("run: {}");
                    requireSameRecords(live, archive);
                    requireReplay(archive, maxValueBytes);
                }
                requireRange(live);
                requireAnotherTopic(broker, run, live);
                assertThatThrownBy(() -> export.to(folder, export.everythingBut(Set.of())))
                        .isInstanceOf(ArchiveException.class)
                        .hasMessageContaining("is not empty");
            }
        }
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("two"));
                RunOnBroker run = new RunOnBroker(broker, "kept.");
                ArchivedRun archive = new ArchivedRun(folder)) {
            new RunImport(archive, run.connection).run();
            try (LiveRun live = new LiveRun(run.connection, Optional.empty())) {
                requireSameRecords(archive, live);
                requireReplay(live, maxValueBytes);
            }
            assertThatThrownBy(() -> new RunImport(archive, run.connection).run())
                    .isInstanceOf(ArchiveException.class)
                    .hasMessageContaining("is not empty: it ends at offset");
            try (RunOnBroker other = new RunOnBroker(broker, "other.")) {
                assertThatThrownBy(() -> new RunImport(archive, other.connection))
                        .isInstanceOf(ArchiveException.class)
                        .hasMessageContaining("begin with 'kept.'");
            }
        }
        Path file = folder.resolve("batches-0.avro");
        byte[] bytes = Files.readAllBytes(file);
        bytes[bytes.length / 2] ^= 1;
        Files.write(file, bytes);
        try (ArchivedRun archive = new ArchivedRun(folder)) {
            assertThatThrownBy(archive::verify)
                    .isInstanceOf(ArchiveException.class)
                    .hasMessageContaining("batches-0.avro was modified after the export");
        }
        assertThat(Arrays.asList(folder.toFile().list())).contains("index.json");
    }
}
