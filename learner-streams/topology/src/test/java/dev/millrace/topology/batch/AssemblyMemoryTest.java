package dev.millrace.topology.batch;

import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.advantage.EmaBaseline;
import dev.millrace.corrections.advantage.ValueTracker;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.RecordedBaseline;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.stages.BaselineMemory.Kept;
import dev.millrace.topology.RunContext;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyHarness;
import dev.millrace.topology.batch.GroupsConfig.ZeroVariance;
import dev.millrace.topology.ingress.IngressConfig;
import dev.millrace.topology.ingress.TrajectoryArrival;
import dev.millrace.topology.ingress.TrajectoryReader;
import dev.millrace.topology.ingress.VersionArrival;
import dev.millrace.topology.task.TopologyMeters;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Lone rollouts, two in a batch, whose advantage compares with earlier batches. */
class AssemblyMemoryTest {
    private static final TopologyConfig DEFAULTS = TopologyConfig.defaults();
    private static final TopologyConfig LONE = new TopologyConfig(
            DEFAULTS.ingress(),
            DEFAULTS.join(),
            new GroupsConfig(60_000, 1, 10_000, 600_000, ZeroVariance.KEEP),
            new BatchConfig(2, 0, BatchConfig.Order.COMPLETION, 0, false),
            DEFAULTS.runtime());
    private static final Algorithm TRACKING =
            Algorithm.defaults().with(a -> a.advantage(new ValueTracker(0.25, 0.75, 10)));
    private static final Algorithm AVERAGING =
            Algorithm.defaults().with(a -> a.advantage(new EmaBaseline(0.5, EmaBaseline.Key.PROMPT)));
    /** SHA-256 of the bytes 01 00 00 00, as sha256sum prints it, its first half. */
    private static final String PROMPT_ONE = "67abdd721024f0ff4e0b3f4c2fc13bc5";

    private static final long NOW_MS = 1_700_000_000_000L;

    @TempDir
    Path directory;

    private TopologyHarness topology;
    private int rollouts;

    @BeforeEach
    void open() {
        topology = new TopologyHarness(LONE, TRACKING, directory);
        topology.pipe(Samples.version(3));
        topology.pipe(Samples.version(4));
    }

    @AfterEach
    void close() {
        topology.close();
    }

    private void pipe(int prompt, double reward) {
        Rollout lone = rollout("g" + rollouts, 0)
                .setGroupSize(1)
                .setOrdinal(rollouts++)
                .setPromptTokens(PackedInts.of(prompt))
                .setReward(reward)
                .build();
        topology.pipe(score(lone, topology.pipe(lone)).build());
    }

    private static List<Double> baselines(LearnerBatch batch) {
        return batch.getEntries().stream()
                .map(entry -> Objects.requireNonNull(entry.getBaseline()).getValue())
                .toList();
    }

    private static StageReport memory(LearnerBatch batch) {
        StageReport report = batch.getStages().get(1);
        assertThat(report.getStage()).isEqualTo("memory");
        return report;
    }

    @Test
    void shouldCompareALoneRolloutWithEarlierBatchesOfItsPrompt() {
        pipe(1, 1);
        pipe(2, 0);
        pipe(2, 1);
        pipe(1, 1);
        pipe(1, 0);
        pipe(3, 0);

        List<LearnerBatch> batches = topology.batches();

        assertThat(batches).extracting(LearnerBatch::getExpectedVersion).containsExactly(4L, 5L, 6L);
        assertThat(baselines(batches.get(0))).containsExactly(0.5, 0.5);
        // a new prompt at 0.75: 1.375 successes or failures of 1.75
        assertThat(baselines(batches.get(1)).get(0)).isCloseTo(0.375 / 1.75, within(1e-12));
        assertThat(baselines(batches.get(1)).get(1)).isCloseTo(1.375 / 1.75, within(1e-12));
        // one version on, 2^(-1/10) is clamped to 0.75: 0.75 · 1.375 + 1 of 0.75 · 1.75 + 1
        assertThat(baselines(batches.get(2)).get(0)).isCloseTo(2.03125 / 2.3125, within(1e-12));
        assertThat(baselines(batches.get(2)).get(1)).isEqualTo(0.5);
        // of two sequences, whitening leaves the sign: 1/2 over the deviation of -1/2 and 1/2
        assertThat(batches.get(1).getEntries())
                .extracting(BatchEntry::getAdvantage)
                .satisfiesExactly(
                        first -> assertThat(first).isCloseTo(Math.sqrt(0.5), within(1e-6)),
                        second -> assertThat(second).isCloseTo(-Math.sqrt(0.5), within(1e-6)));
        assertThat(batches.get(0).getEntries().get(0).getBaseline().getKey()).isEqualTo(PROMPT_ONE);
        assertThat(memory(batches.get(0)).getValues())
                .containsOnly(Map.entry("keys", 2.0), Map.entry("added", 2.0), Map.entry("forgotten", 0.0));
        assertThat(memory(batches.get(2)).getValues())
                .containsEntry("keys", 3.0)
                .containsEntry("added", 1.0);
    }

    @Test
    void shouldRememberNothingOfABatchThatIsGivenUp() {
        pipe(1, 1);
        pipe(1, -1); // no success
        pipe(1, 1);
        pipe(2, 1);

        assertThat(topology.outcomes())
                .hasSize(2)
                .allSatisfy(outcome ->
                        assertThat(outcome.getDetail()).contains("batch 0 is given up", "rewards must lie in [0, 1]"));
        assertThat(baselines(topology.batches().get(0))).containsExactly(0.5, 0.5);
    }

    @Test
    void shouldDecideTheNextBatchAfterARestoreFromTheChangelog() {
        pipe(1, 1);
        pipe(2, 0);
        int before = topology.trajectories().size();
        KeyValueStore<Bytes, byte[]> restored = store();
        for (TestRecord<byte[], byte[]> change : topology.changelog(AssemblyStore.NAME)) {
            restored.put(Bytes.wrap(change.key()), change.value());
        }
        pipe(2, 1);
        pipe(1, 1);
        LearnerBatch uninterrupted = topology.batches().get(1);
        List<LearnerBatch> made = new ArrayList<>();

        try (AssemblyTask task = task(TRACKING, EpochLineage.FIRST, List.of(), restored, made)) {
            long offset = before;
            for (Trajectory trajectory : topology.trajectories()) {
                task.take(arrival(trajectory, offset++), NOW_MS);
            }
        }

        assertThat(made).hasSize(1);
        assertThat(made.get(0).getEntries()).isEqualTo(uninterrupted.getEntries());
        assertThat(made.get(0).getStages()).isEqualTo(uninterrupted.getStages());
    }

    @Test
    void shouldDropWhatAnotherKindOfAdvantageKept() {
        KeyValueStore<Bytes, byte[]> held = store();
        AssemblyStore before = new AssemblyStore(held);
        before.kept.put("value_tracker/" + PROMPT_ONE, new Kept(0, 4, List.of(9.0, 1.0)));
        before.kept.put("ema_baseline/" + PROMPT_ONE, new Kept(0, 4, List.of(-0.25)));
        List<LearnerBatch> made = new ArrayList<>();

        try (AssemblyTask task = task(AVERAGING, EpochLineage.FIRST, List.of(), held, made)) {
            takeTwoOfPromptOne(task);
        }

        assertThat(baselines(made.get(0))).containsExactly(-0.25, -0.25);
        assertThat(before.kept.all()).containsOnlyKeys("ema_baseline/" + PROMPT_ONE);
    }

    private void takeTwoOfPromptOne(AssemblyTask task) {
        pipe(1, 1);
        pipe(1, 0);
        long offset = 0;
        for (Trajectory trajectory : topology.trajectories()) {
            task.take(arrival(trajectory, offset++), NOW_MS);
        }
    }

    /**
     * Epoch 0 made batches 0 and 1; epoch 1 continued from batch 0 and made 1 and 2; epoch 2 continues from its batch
     * 1.
     */
    @Test
    void shouldGoBackToTheMemoryOfTheVersionThatAnEpochBeginsWith() {
        EpochLineage lineage = new EpochLineage(
                Map.of(Samples.TOPICS.batches() + "-0", 5L),
                List.of(new Ancestor(1, 2, "00"), new Ancestor(0, 1, "00")));
        List<LearnerBatch> past = List.of(past(0, 0, 1), past(0, 1, 1), past(1, 1, 0), past(1, 2, 1), past(7, 0, 0));
        List<LearnerBatch> made = new ArrayList<>();

        try (AssemblyTask task = task(AVERAGING, lineage, past, store(), made)) {
            for (long version = 2; version <= 4; version++) {
                task.take(new VersionArrival(version, version - 1, NOW_MS - 1, version), NOW_MS - 1);
            }
            takeTwoOfPromptOne(task);
        }

        assertThat(made).hasSize(1);
        assertThat(made.get(0).getBatchId()).isEqualTo(2);
        // 0.5 · 0 + 0.5 · 1, then 0.5 · 0.5 + 0.5 · 0
        assertThat(baselines(made.get(0))).containsExactly(0.25, 0.25);
    }

    @Test
    void shouldRefuseAnEpochWhosePastTheLogNoLongerHolds() {
        EpochLineage lineage =
                new EpochLineage(Map.of(Samples.TOPICS.batches() + "-0", 5L), List.of(new Ancestor(1, 2, "00")));
        try (AssemblyTask task = task(AVERAGING, lineage, List.of(past(1, 1, 0)), store(), new ArrayList<>())) {
            assertThatThrownBy(() -> task.take(new VersionArrival(2, 1, NOW_MS, 0), NOW_MS))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("algorithm.advantage.kind=ema_baseline keeps baselines from batch to batch, and they"
                            + " cannot be restored to batch 1, after which epoch 2 begins: batch 0 is not on"
                            + " test.batches; restart with an advantage without state, such as batch_mean");
        }
    }

    private static LearnerBatch past(int epoch, long batchId, double reward) {
        return LearnerBatch.newBuilder()
                .setRunId(Samples.RUN.runId())
                .setEpoch(epoch)
                .setPolicyId(Samples.RUN.policyId())
                .setBatchId(batchId)
                .setAssembledVersion(batchId)
                .setExpectedVersion(batchId)
                .setEntries(List.of(new BatchEntry(
                        "p/0",
                        "p",
                        0,
                        0L,
                        0,
                        0L,
                        reward,
                        0.0,
                        0L,
                        3,
                        null,
                        null,
                        null,
                        null,
                        new RecordedBaseline(PROMPT_ONE, 0.0))))
                .setStages(List.of())
                .setTrainedTokens(3)
                .setStepScale(1)
                .setStalenessMean(0)
                .setStalenessMax(0)
                .setAssembledAtMs(NOW_MS)
                .build();
    }

    private static KeyValueStore<Bytes, byte[]> store() {
        KeyValueStore<Bytes, byte[]> store = Stores.keyValueStoreBuilder(
                        Stores.inMemoryKeyValueStore(AssemblyStore.NAME), Serdes.Bytes(), Serdes.ByteArray())
                .withLoggingDisabled()
                .build();
        store.init(new MockProcessorContext<>().getStateStoreContext(), store);
        return store;
    }

    private TrajectoryArrival arrival(Trajectory trajectory, long offset) {
        return new TrajectoryArrival(trajectory, new Record<>(new byte[0], new byte[0], NOW_MS), 0, offset);
    }

    private AssemblyTask task(
            Algorithm algorithm,
            EpochLineage lineage,
            List<LearnerBatch> past,
            KeyValueStore<Bytes, byte[]> held,
            List<LearnerBatch> made) {
        return new AssemblyTask(
                LONE,
                algorithm,
                new RunContext(
                        Samples.RUN,
                        lineage,
                        Samples.TOPICS,
                        topology.schemas,
                        () -> new Past(past),
                        1 << 20,
                        new TopologyMeters(new SimpleMeterRegistry())),
                new TrajectoryReader(
                        Samples.TOPICS.trajectories(), topology.schemas, Samples.RUN, IngressConfig.defaults()),
                0,
                held,
                output -> made.add(AvroSerde.of(LearnerBatch.class, topology.schemas)
                        .deserializer()
                        .deserialize(output.topic(), output.value())));
    }

    /** Batches by their offsets. */
    private final class Past implements RecordFetcher {
        private final List<LearnerBatch> batches;

        Past(List<LearnerBatch> batches) {
            this.batches = batches;
        }

        @Override
        public List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets) {
            assertThat(partition).isEqualTo(new TopicPartition(Samples.TOPICS.batches(), 0));
            return Arrays.stream(offsets)
                    .filter(offset -> offset < batches.size())
                    .mapToObj(offset -> new ConsumerRecord<>(
                            partition.topic(),
                            0,
                            offset,
                            new byte[0],
                            topology.bytes(partition.topic(), batches.get((int) offset), LearnerBatch.class)))
                    .toList();
        }

        @Override
        public void close() {
            // reads a list
        }
    }
}
