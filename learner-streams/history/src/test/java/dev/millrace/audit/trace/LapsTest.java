package dev.millrace.audit.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.audit.trace.Laps.Hop;
import dev.millrace.audit.trace.Laps.Lap;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.GivenRollouts;
import dev.millrace.replay.ScoredRollouts;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.Samples;
import dev.millrace.topology.batch.DirectBatches;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;

class LapsTest {
    private static final RunIdentity RUN = Samples.RUN;
    private static final RunTopics TOPICS = Samples.TOPICS;
    private static final Duration PATIENCE = Duration.ofSeconds(1);

    private final MemoryRecords records = new MemoryRecords();

    /** A batch of two rollouts, {@code atMs} later than the first: the second is joined last. */
    private void batch(long batchId, long atMs) {
        String group = "2-" + batchId;
        records.put(
                TOPICS.prompts(),
                atMs,
                PromptRequest.class,
                PromptRequest.newBuilder()
                        .setRunId(RUN.runId())
                        .setEpoch(RUN.epoch())
                        .setGroupId(group)
                        .setOrdinal(batchId)
                        .setEnvironment("inc")
                        .setEnvironmentState("")
                        .setPromptTokens(PackedInts.of(1))
                        .setSamples(2)
                        .setSampling(Samples.rollout(group, 0).getSampling())
                        .setTokenizerHash("vocabulary")
                        .setAdmittedVersion(0)
                        .setReleasedAtMs(atMs)
                        .build());
        List<Trajectory> joined = new ArrayList<>();
        for (int sample = 0; sample < 2; sample++) {
            Rollout rollout = Samples.rollout(group, sample)
                    .setStartedAtMs(atMs + 3)
                    .setFinishedAtMs(atMs + 20 + 10 * sample)
                    .build();
            long offset = records.put(TOPICS.rollouts(), atMs + 40, Rollout.class, rollout);
            Trajectory trajectory = Trajectory.newBuilder(
                            new GivenRollouts(RUN).make(scored(rollout), 4).get(0))
                    .setRolloutSource(new LogCoordinates(TOPICS.rollouts(), 0, offset))
                    .setScoredAtMs(atMs + 50 + 20 * sample)
                    .build();
            records.put(TOPICS.trajectories(), atMs + 100 + sample, Trajectory.class, trajectory);
            joined.add(trajectory);
        }
        LearnerBatch batch = new DirectBatches(RUN, Algorithm.defaults()).make(batchId, joined, 4);
        List<BatchEntry> entries = batch.getEntries().stream()
                .map(entry -> BatchEntry.newBuilder(entry)
                        .setOffset(2 * batchId + entry.getOffset())
                        .build())
                .toList();
        records.put(
                TOPICS.batches(),
                atMs + 105,
                LearnerBatch.class,
                LearnerBatch.newBuilder(batch).setEntries(entries).build());
    }

    private static ScoredRollouts scored(Rollout rollout) {
        float[] logProbs = PackedFloats.toArray(rollout.getBehaviorLogProbs());
        byte[] mask = new byte[logProbs.length];
        PackedMask.copyTo(rollout.getMask(), mask, 0);
        return new ScoredRollouts(
                List.of(rollout), new TokenBatch(new int[] {0, logProbs.length}, mask), logProbs, logProbs);
    }

    private void step(long batchId, long atMs) {
        records.put(
                TOPICS.trainingLog(),
                atMs + 150,
                TrainingStep.class,
                TrainingStep.newBuilder(Samples.starved(batchId, batchId + 1))
                        .setStarved(false)
                        .setStartedAtMs(atMs + 110)
                        .setFinishedAtMs(atMs + 140)
                        .build());
    }

    private void serving(long version, long sinceMs, ServerRole role) {
        records.put(
                TOPICS.serving(),
                sinceMs + 1,
                Serving.class,
                Serving.newBuilder()
                        .setRunId(RUN.runId())
                        .setEpoch(RUN.epoch())
                        .setServerId(role.name())
                        .setRole(role)
                        .setPolicyId(RUN.policyId())
                        .setVersion(version)
                        .setSinceMs(sinceMs)
                        .setHeartbeatMs(sinceMs + 1)
                        .setTokens(0)
                        .build());
    }

    @Test
    void shouldFollowTheRolloutThatItsBatchWaitedFor() {
        batch(0, 1_000_000);
        step(0, 1_000_000);
        serving(1, 1_000_141, ServerRole.SCORER);
        serving(2, 1_000_160, ServerRole.GENERATOR);

        Laps laps = Laps.read(records, 10, PATIENCE);
        assertThat(laps.incomplete()).isZero();
        assertThat(laps.laps()).hasSize(1);
        Lap lap = laps.laps().get(0);
        assertThat(lap.version()).isEqualTo(1);
        assertThat(lap.millis())
                .isEqualTo(Map.of(
                        Hop.REQUEST, 3L,
                        Hop.SAMPLING, 27L,
                        Hop.SCORING, 40L,
                        Hop.JOIN, 31L,
                        Hop.BATCH, 4L,
                        Hop.FETCH, 5L,
                        Hop.STEP, 30L,
                        Hop.TAKE_UP, 20L));
        assertThat(lap.total()).isEqualTo(160);
    }

    @Test
    void shouldTakeTheLastStepsAndCountThoseThatLackARecord() {
        for (int batch = 0; batch < 6; batch++) {
            batch(batch, 1_000_000 + 100 * batch);
            step(batch, 1_000_000 + 100 * batch);
        }
        records.put(TOPICS.trainingLog(), 1_001_000, TrainingStep.class, Samples.starved(6, 6));
        serving(5, 1_000_560, ServerRole.GENERATOR);

        Laps laps = Laps.read(records, 4, PATIENCE);
        assertThat(laps.laps()).extracting(Lap::batchId).containsExactly(2L, 3L, 4L);
        assertThat(laps.incomplete()).as("nobody serves version 6").isEqualTo(1);
        assertThat(laps.millisPerStep()).isCloseTo(100, within(1e-9));
        assertThat(laps.quantile(0.5, lap -> lap.millis().get(Hop.TAKE_UP))).isEqualTo(120);
        assertThat(laps.quantile(1, lap -> lap.millis().get(Hop.TAKE_UP))).isEqualTo(220);
    }

    /** A run's records on one partition of each topic. */
    private static final class MemoryRecords implements RunRecords {
        private final SchemaRegistry registry = new InMemorySchemaRegistry();
        private final Map<String, List<ConsumerRecord<byte[], byte[]>>> topics = new HashMap<>();

        <T extends SpecificRecord> long put(String topic, long timestampMs, Class<T> type, T value) {
            List<ConsumerRecord<byte[], byte[]>> all = topics.computeIfAbsent(topic, unseen -> new ArrayList<>());
            all.add(new ConsumerRecord<>(
                    topic,
                    0,
                    all.size(),
                    timestampMs,
                    TimestampType.CREATE_TIME,
                    0,
                    0,
                    new byte[0],
                    AvroSerde.of(type, registry).serializer().serialize(topic, value),
                    new RecordHeaders(),
                    Optional.empty()));
            return all.size() - 1L;
        }

        @Override
        public RunIdentity run() {
            return RUN;
        }

        @Override
        public EpochLineage lineage() {
            return EpochLineage.FIRST;
        }

        @Override
        public RunTopics topics() {
            return TOPICS;
        }

        @Override
        public SchemaRegistry registry() {
            return registry;
        }

        @Override
        public TopicScan scan(Duration patience) {
            return new MemoryScan(topic -> topics.getOrDefault(topic, List.of()));
        }
    }

    private record MemoryScan(Function<String, List<ConsumerRecord<byte[], byte[]>>> topics) implements TopicScan {
        @Override
        public ConsistentCut cut(List<String> of) {
            return ConsistentCut.of(
                    of,
                    topic -> List.of(new TopicPartition(topic, 0)),
                    partitions -> partitions.stream()
                            .collect(Collectors.toMap(
                                    Function.identity(),
                                    partition -> new OffsetRange(
                                            0, topics.apply(partition.topic()).size()))));
        }

        @Override
        public Map<TopicPartition, Long> keptFrom(List<TopicPartition> partitions) {
            return partitions.stream().collect(Collectors.toMap(Function.identity(), partition -> 0L));
        }

        @Override
        public Map<TopicPartition, Long> since(ConsistentCut cut, List<TopicPartition> partitions, long timestampMs) {
            return partitions.stream()
                    .collect(Collectors.toMap(
                            Function.identity(),
                            partition -> topics.apply(partition.topic()).stream()
                                    .filter(record -> record.timestamp() >= timestampMs)
                                    .map(ConsumerRecord::offset)
                                    .findFirst()
                                    .orElse(cut.of(partition).end())));
        }

        @Override
        public void readWhile(
                Map<TopicPartition, Long> from, ConsistentCut cut, Predicate<ConsumerRecord<byte[], byte[]>> reader) {
            from.forEach((partition, offset) -> topics.apply(partition.topic()).stream()
                    .skip(offset)
                    .takeWhile(reader)
                    .forEach(record -> {}));
        }

        @Override
        public long records() {
            return 0;
        }

        @Override
        public long bytes() {
            return 0;
        }

        @Override
        public void close() {
            // reads a map
        }
    }
}
