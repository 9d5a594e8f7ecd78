package dev.millrace.replay;

import static dev.millrace.topology.Samples.TOPICS;
import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyHarness;
import dev.millrace.topology.batch.BatchConfig;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AsRecordedTest {
    private static final int MAX_VALUE_BYTES = 1 << 20;

    @TempDir
    Path directory;

    private TopologyConfig config;
    private Algorithm algorithm = Algorithm.defaults();
    private TopologyHarness topology;
    private MemoryRun recorded;

    /** Four batches of two groups, a duplicate, a late score, a group that stays short, garbage on every input. */
    @BeforeEach
    void run() {
        TopologyConfig defaults = TopologyConfig.defaults();
        config = with(defaults, new BatchConfig(4, 0, BatchConfig.Order.COMPLETION, 0, false));
        topology = new TopologyHarness(config, directory, MAX_VALUE_BYTES);
        topology.pipe(Samples.version(3));
        topology.pipe(Samples.version(4));
        for (int g = 0; g < 8; g++) {
            for (int i = 0; i < 2; i++) {
                topology.later(Duration.ofMillis(130));
                Rollout rollout = rollout("g" + g, i).setOrdinal(g).setReward(i).build();
                long at = topology.pipe(rollout);
                topology.pipe(score(rollout, at, -0.4f - g, -1f, -1.2f).build());
            }
            if (g == 3) {
                topology.pipe(rollout("g0", 0).setOrdinal(0).setReward(0).build());
                topology.pipe(TOPICS.rollouts(), "g0", new byte[] {1, 2});
                topology.pipe(TOPICS.scores(), "g0", new byte[] {0, 0, 0, 0, 1});
                topology.pipe(TOPICS.trajectories(), "g0", new byte[] {7});
                topology.pipe(TOPICS.policyVersions(), "policy/2/9", new byte[] {7});
            }
        }
        Rollout late = rollout("late", 0).setOrdinal(9).build();
        long at = topology.pipe(late);
        topology.idle(Duration.ofMinutes(11));
        topology.pipe(score(late, at).build());
        Rollout lonely = rollout("short", 1).setOrdinal(10).build();
        topology.pipe(score(lonely, topology.pipe(lonely)).build());
        topology.idle(Duration.ofMinutes(3));
        recorded = MemoryRun.of(topology);
    }

    private static TopologyConfig with(TopologyConfig of, BatchConfig batch) {
        return new TopologyConfig(of.ingress(), of.join(), of.groups(), batch, of.runtime());
    }

    private List<TaskVerdict> replay(int threads) throws InterruptedException {
        return new AsRecorded(recorded, config, algorithm, MAX_VALUE_BYTES).replay(threads);
    }

    @Test
    void shouldMakeEveryRecordAgainWithAnyNumberOfThreads() throws Exception {
        List<TaskVerdict> verdicts = replay(1);
        assertThat(verdicts).extracting(TaskVerdict::task).containsExactly("join-0", "assembly-0");
        assertThat(verdicts).allMatch(TaskVerdict::isProved).allMatch(verdict -> verdict.beginnings() == 1);
        assertThat(verdicts.get(0).same())
                .isEqualTo(Map.of(TOPICS.trajectories(), 17L, TOPICS.outcomes(), 3L, TOPICS.deadLetters(), 2L));
        assertThat(verdicts.get(1).same())
                .isEqualTo(Map.of(TOPICS.batches(), 4L, TOPICS.outcomes(), 1L, TOPICS.deadLetters(), 2L));
        assertThat(replay(3)).isEqualTo(verdicts);
    }

    @Test
    void shouldPassOverCopiesOfWhatWasMade() throws Exception {
        List<TaskVerdict> verdicts = replay(1);
        recorded.copy(TOPICS.batches(), 1);
        recorded.copy(TOPICS.batches(), 3);
        recorded.copy(TOPICS.outcomes(), 0);

        assertThat(replay(1)).isEqualTo(verdicts).allMatch(TaskVerdict::isProved);
    }

    @Test
    void shouldShowTheFieldInWhichATrajectoryDiffers() throws Exception {
        ConsumerRecord<byte[], byte[]> fifth =
                recorded.of(TOPICS.trajectories()).get(4L);
        var serde = AvroSerde.of(Trajectory.class, topology.schemas);
        Trajectory changed = serde.deserializer().deserialize("", fifth.value());
        changed.put("reward", 0.25);
        replace(fifth, serde.serializer().serialize(TOPICS.trajectories(), changed));

        assertThat(replay(1).get(0).difference())
                .contains(new ReplayDifference("join-0", "test.trajectories-0@4 (number 4)", "reward", "0.25", "0.0"));
    }

    @Test
    void shouldShowTheFieldInWhichABatchDiffers() throws Exception {
        ConsumerRecord<byte[], byte[]> second = recorded.of(TOPICS.batches()).get(1L);
        var serde = AvroSerde.of(LearnerBatch.class, topology.schemas);
        LearnerBatch changed = serde.deserializer().deserialize("", second.value());
        changed.getEntries().get(2).put("advantage", 9.0);
        replace(second, serde.serializer().serialize(TOPICS.batches(), changed));

        List<TaskVerdict> verdicts = replay(2);
        assertThat(verdicts.get(0).isProved()).isTrue();
        assertThat(verdicts.get(1).difference()).get().satisfies(difference -> {
            assertThat(difference.record()).isEqualTo("test.batches-0@1 (number 1)");
            assertThat(difference.field()).isEqualTo("entries[2].advantage");
            assertThat(difference.recorded()).isEqualTo("9.0");
        });
        assertThat(verdicts.get(1).same()).containsEntry(TOPICS.batches(), 1L);
    }

    private void replace(ConsumerRecord<byte[], byte[]> old, byte[] value) {
        recorded.put(new ConsumerRecord<>(
                old.topic(),
                0,
                old.offset(),
                old.timestamp(),
                old.timestampType(),
                0,
                0,
                old.key(),
                value,
                new RecordHeaders(old.headers()),
                java.util.Optional.empty()));
        // the harness's record is inconsistent now; closing it would fail
    }

    @Test
    void shouldCompareWhatTheRunWroteWithAnOlderSchemaAsThatSchemaKnowsIt() throws Exception {
        rewriteWithout(TOPICS.trajectories(), Trajectory.class, "reference_version");
        rewriteWithout(TOPICS.outcomes(), Outcome.class, "newest_version");

        List<TaskVerdict> verdicts = replay(1);
        assertThat(verdicts).allMatch(TaskVerdict::isProved);
        assertThat(verdicts.get(0).same()).containsEntry(TOPICS.trajectories(), 17L);

        Map<String, Object> changed = Map.of("reward", 0.25);
        rewrite(recorded.of(TOPICS.trajectories()).get(4L), without(Trajectory.class, "reference_version"), changed);
        assertThat(replay(1).get(0).difference())
                .contains(new ReplayDifference("join-0", "test.trajectories-0@4 (number 4)", "reward", "0.25", "0.0"));
    }

    private static Schema without(Class<? extends SpecificRecord> type, String field) {
        Schema schema = SpecificData.get().getSchema(type);
        List<Schema.Field> kept = schema.getFields().stream()
                .filter(each -> !each.name().equals(field))
                .map(each -> new Schema.Field(each, each.schema()))
                .toList();
        assertThat(kept).hasSize(schema.getFields().size() - 1);
        return Schema.createRecord(schema.getName(), schema.getDoc(), schema.getNamespace(), false, kept);
    }

    private void rewriteWithout(String topic, Class<? extends SpecificRecord> type, String field) throws IOException {
        for (ConsumerRecord<byte[], byte[]> record :
                List.copyOf(recorded.of(topic).values())) {
            if (record.value().length > 5) {
                rewrite(record, without(type, field), Map.of());
            }
        }
    }

    /** As if the record had been written with another schema. */
    private void rewrite(ConsumerRecord<byte[], byte[]> record, Schema as, Map<String, Object> changed)
            throws IOException {
        Schema written = topology.schemas.byId(ByteBuffer.wrap(record.value()).getInt(1));
        GenericRecord value = new GenericDatumReader<GenericRecord>(written, as)
                .read(null, DecoderFactory.get().binaryDecoder(record.value(), 5, record.value().length - 5, null));
        changed.forEach(value::put);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.write(0);
        bytes.write(ByteBuffer.allocate(4)
                .putInt(topology.schemas.idOf(record.topic(), as))
                .array());
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
        new GenericDatumWriter<GenericRecord>(as).write(value, encoder);
        replace(record, bytes.toByteArray());
    }

    @Test
    void shouldMissARecordThatTheRunHasLost() throws Exception {
        recorded.of(TOPICS.outcomes()).remove(0L);
        assertThat(replay(1).get(0).difference())
                .get()
                .asString()
                .contains("record number 8")
                .contains("the run has none");
    }

    @Test
    void shouldMissADeadLetterThatTheRunHasLost() throws Exception {
        recorded.of(TOPICS.deadLetters()).remove(0L);
        assertThat(replay(1).get(0).difference())
                .get()
                .asString()
                .isEqualTo(
                        "the dead letter of test.rollouts-0@9 of the check of test.rollouts-0: the run has none, the replay one");
    }

    @Test
    void shouldSayWhichInputIsMissing() throws Exception {
        recorded.of(TOPICS.scores()).remove(2L);
        assertThat(replay(1).get(0).gap())
                .get()
                .asString()
                .contains("test.scores-0 was read up to offset 2")
                .contains("leads to offset 3");
    }

    @Test
    void shouldSayByWhichOtherSettingsTheRunDecided() throws Exception {
        algorithm = Algorithm.defaults().with(a -> a.staleness(new StalenessRules(3, 0, 0)));
        assertThat(replay(1))
                .hasSize(2)
                .allSatisfy(verdict -> assertThat(verdict.gap())
                        .get()
                        .asString()
                        .contains(" on, the run used other settings than these:"
                                + " algorithm.staleness.max_versions was 8 and is 3 here; give the run's own"
                                + " configuration"));
    }
}
