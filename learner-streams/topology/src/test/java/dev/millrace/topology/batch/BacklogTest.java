package dev.millrace.topology.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.RunContext;
import dev.millrace.topology.RuntimeConfig;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.batch.VersionHistory.Publication;
import dev.millrace.topology.ingress.IngressConfig;
import dev.millrace.topology.ingress.TrajectoryArrival;
import dev.millrace.topology.ingress.TrajectoryReader;
import dev.millrace.topology.ingress.VersionArrival;
import dev.millrace.topology.task.TaskOutput;
import dev.millrace.topology.task.TopologyMeters;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Trajectories arrive for an hour without a new version; then the learner continues. The system property
 * {@code millrace.backlog.rollouts} sets their number; the test prints the peak heap.
 */
class BacklogTest {
    private static final Logger LOG = LoggerFactory.getLogger(BacklogTest.class);
    private static final int ROLLOUTS = Integer.getInteger("millrace.backlog.rollouts", 2_048);
    private static final int TOKENS = 512;
    private static final int GROUP = 8;
    private static final int SEQUENCES = 256;
    private static final long START_MS = 1_700_000_000_000L;
    private static final long HOUR_MS = 3_600_000;

    /** Trains on data of any age, including data that waited for an hour. */
    private static final Algorithm HOWEVER_OLD =
            Algorithm.defaults().with(a -> a.staleness(new StalenessRules(ROLLOUTS, 0, 0)));

    private final InMemorySchemaRegistry schemas = new InMemorySchemaRegistry();
    private final List<Long> reads = new ArrayList<>();

    private Trajectory trajectory(long offset) {
        Rollout rollout = Samples.rollout(
                        "g" + offset / GROUP, (int) (offset % GROUP), GROUP, TOKENS, -1f - offset % 7 / 10f, 0)
                .setOrdinal(offset / GROUP)
                .setReward(offset % 3)
                .build();
        return new Trajectory(
                Samples.RUN.runId(),
                Samples.RUN.epoch(),
                Samples.RUN.policyId(),
                rollout.getRolloutId(),
                rollout.getGroupId(),
                rollout.getOrdinal(),
                rollout.getSampleIndex(),
                GROUP,
                new LogCoordinates(Samples.TOPICS.rollouts(), 0, offset),
                new LogCoordinates(Samples.TOPICS.scores(), 0, offset),
                rollout.getPromptTokens(),
                rollout.getResponseTokens(),
                rollout.getMask(),
                1.0,
                rollout.getVersionSpans(),
                rollout.getBehaviorLogProbs(),
                rollout.getBehaviorLogProbs(),
                PackedFloats.of(Samples.filled(TOKENS, -1.1f)),
                0L,
                rollout.getReward(),
                "STOP",
                timeOf(offset),
                timeOf(offset),
                null,
                -1L,
                null,
                Map.of(),
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null);
    }

    private static long timeOf(long offset) {
        return START_MS + offset * HOUR_MS / ROLLOUTS;
    }

    private ConsumerRecord<byte[], byte[]> record(long offset) {
        Trajectory trajectory = trajectory(offset);
        return new ConsumerRecord<>(
                Samples.TOPICS.trajectories(),
                0,
                offset,
                timeOf(offset),
                org.apache.kafka.common.record.TimestampType.CREATE_TIME,
                0,
                0,
                trajectory.getGroupId().getBytes(StandardCharsets.UTF_8),
                AvroSerde.of(Trajectory.class, schemas)
                        .serializer()
                        .serialize(Samples.TOPICS.trajectories(), trajectory),
                new RecordHeaders(),
                java.util.Optional.empty());
    }

    /** Recreates records instead of storing a log. */
    private final class Log implements RecordFetcher {
        @Override
        public List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets) {
            reads.add((long) offsets.length);
            return Arrays.stream(offsets).mapToObj(BacklogTest.this::record).toList();
        }

        @Override
        public void close() {
            // holds nothing
        }
    }

    private static KeyValueStore<Bytes, byte[]> store() {
        KeyValueStore<Bytes, byte[]> store = Stores.keyValueStoreBuilder(
                        Stores.inMemoryKeyValueStore(AssemblyStore.NAME), Serdes.Bytes(), Serdes.ByteArray())
                .withLoggingDisabled()
                .build();
        store.init(new MockProcessorContext<>().getStateStoreContext(), store);
        return store;
    }

    private AssemblyTask task(
            Algorithm algorithm, long cacheBytes, KeyValueStore<Bytes, byte[]> held, Consumer<TaskOutput> sink) {
        TopologyConfig defaults = TopologyConfig.defaults();
        RuntimeConfig runtime = defaults.runtime();
        TopologyConfig config = new TopologyConfig(
                defaults.ingress(),
                defaults.join(),
                defaults.groups(),
                new BatchConfig(SEQUENCES, 0, BatchConfig.Order.COMPLETION, 2, false),
                new RuntimeConfig(
                        runtime.threads(),
                        runtime.commitIntervalMs(),
                        runtime.maxTaskIdleMs(),
                        runtime.stateStores(),
                        runtime.storeCacheBytes(),
                        cacheBytes,
                        runtime.rocksdbBytes(),
                        runtime.bufferedRecords(),
                        runtime.standbyReplicas(),
                        runtime.rebalanceProtocol(),
                        runtime.sessionTimeoutMs(),
                        runtime.instanceId(),
                        runtime.transactionTimeoutMs(),
                        runtime.compression(),
                        runtime.startTimeoutMs(),
                        runtime.stopTimeoutMs(),
                        runtime.alarmAfterMs()));
        RunContext context = new RunContext(
                Samples.RUN,
                EpochLineage.FIRST,
                Samples.TOPICS,
                schemas,
                Log::new,
                1 << 20,
                new TopologyMeters(new SimpleMeterRegistry()));
        TrajectoryReader reader =
                new TrajectoryReader(Samples.TOPICS.trajectories(), schemas, Samples.RUN, IngressConfig.defaults());
        return new AssemblyTask(config, algorithm, context, reader, 0, held, sink);
    }

    private TrajectoryArrival arrival(long offset) {
        ConsumerRecord<byte[], byte[]> came = record(offset);
        return new TrajectoryArrival(
                trajectory(offset), new Record<>(came.key(), came.value(), came.timestamp()), 0, offset);
    }

    /** Checksums of the batches that come of it. */
    private List<Long> batches(long cacheBytes) {
        List<Long> batches = new ArrayList<>();
        try (AssemblyTask task = task(HOWEVER_OLD, cacheBytes, store(), decision -> {
            assertThat(decision.topic()).isEqualTo(Samples.TOPICS.batches());
            CRC32C checksum = new CRC32C();
            checksum.update(decision.value());
            batches.add(checksum.getValue());
        })) {
            for (long offset = 0; offset < ROLLOUTS; offset++) {
                task.take(arrival(offset), timeOf(offset));
            }
            assertThat(batches).as("as many as may wait for the learner").hasSize(2);
            report(cacheBytes);
            task.take(new VersionArrival(0, -1, START_MS, 0), START_MS);
            for (long batch = 0; batch < ROLLOUTS / SEQUENCES; batch++) {
                task.take(
                        new VersionArrival(batch + 1, batch, START_MS + HOUR_MS + batch, batch),
                        START_MS + HOUR_MS + batch);
            }
        }
        return batches;
    }

    private static void report(long cacheBytes) {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        LOG.info(
                "{} trajectories of {} tokens wait, member_cache_bytes {}: {} MB of heap in use, {} MB allowed",
                ROLLOUTS,
                TOKENS,
                cacheBytes,
                (runtime.totalMemory() - runtime.freeMemory()) >> 20,
                runtime.maxMemory() >> 20);
    }

    @Test
    void shouldMakeTheSameBatchesOfABacklogThatIsReadAgain() {
        List<Long> fromTheLog = batches(1 << 20);
        assertThat(fromTheLog).hasSize(ROLLOUTS / SEQUENCES).doesNotHaveDuplicates();
        assertThat(reads).hasSizeGreaterThan(ROLLOUTS / SEQUENCES / 2);
        if (ROLLOUTS <= 10_000) {
            reads.clear();
            assertThat(batches(Long.MAX_VALUE)).isEqualTo(fromTheLog);
            assertThat(reads).isEmpty();
        }
    }

    @Test
    void shouldTrainOnFreshRolloutsThoughTheStoreHoldsAVersionBehindAGap() {
        KeyValueStore<Bytes, byte[]> held = store();
        AssemblyStore before = new AssemblyStore(held);
        before.putNextBatchId(1);
        before.versions.put(0L, new Publication(-1, START_MS - 3));
        before.versions.put(1L, new Publication(0, START_MS - 2));
        before.versions.put(1_000_000L, new Publication(0, START_MS - 1));
        List<LearnerBatch> batches = new ArrayList<>();
        try (AssemblyTask task = task(Algorithm.defaults(), Long.MAX_VALUE, held, decision -> {
            assertThat(decision.topic()).isEqualTo(Samples.TOPICS.batches());
            batches.add(AvroSerde.of(LearnerBatch.class, schemas)
                    .deserializer()
                    .deserialize(decision.topic(), decision.value()));
        })) {
            for (long offset = 0; offset < SEQUENCES; offset++) {
                task.take(arrival(offset), timeOf(offset));
            }
        }
        assertThat(batches).singleElement().satisfies(batch -> {
            assertThat(batch.getAssembledVersion()).isEqualTo(1);
            assertThat(batch.getEntries()).hasSize(SEQUENCES);
        });
        assertThat(before.versions.all()).doesNotContainKey(1_000_000L).containsKey(1L);
    }
}
