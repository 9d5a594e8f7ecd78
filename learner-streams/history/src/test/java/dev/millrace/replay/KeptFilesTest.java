package dev.millrace.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyHarness;
import dev.millrace.topology.batch.BatchConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.specific.SpecificDatumReader;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KeptFilesTest {
    @TempDir
    Path directory;

    private Path kept;
    private TopologyHarness topology;
    private Algorithm corrections;
    private MemoryRun run;

    /** Two batches of one group of two; the second sample of each is far off policy. */
    @BeforeEach
    void run() {
        kept = directory.resolve("kept");
        TopologyConfig defaults = TopologyConfig.defaults();
        corrections = Algorithm.defaults();
        topology = new TopologyHarness(
                new TopologyConfig(
                        defaults.ingress(),
                        defaults.join(),
                        defaults.groups(),
                        new BatchConfig(2, 0, BatchConfig.Order.COMPLETION, 0, false),
                        defaults.runtime()),
                corrections,
                directory.resolve("state"));
        topology.pipe(Samples.version(3));
        topology.pipe(Samples.version(4));
        for (int g = 0; g < 2; g++) {
            for (int i = 0; i < 2; i++) {
                Rollout rollout =
                        Samples.rollout("g" + g, i).setOrdinal(g).setReward(i).build();
                float shift = i == 0 ? 0f : -3f;
                topology.pipe(Samples.score(rollout, topology.pipe(rollout), -0.5f + shift, -1f + shift, -1.5f + shift)
                        .build());
            }
        }
        run = MemoryRun.of(topology);
    }

    @AfterEach
    void close() {
        topology.close();
    }

    private void replay(int threads, KeptFiles files) throws InterruptedException {
        Algorithm other =
                corrections.with(a -> a.rejection(new Rejection("seq_mean_k3", "0.5", ComparedPolicies.ANCHOR)));
        new WhatIf(
                        run,
                        StepRange.ALL,
                        List.of(
                                new Alternative("recorded", corrections),
                                new Alternative("the same", corrections),
                                new Alternative("rs.yaml", other)))
                .keeping(files)
                .replay(threads, step -> {});
    }

    private KeptFiles begin() {
        return new KeptFiles(kept, List.of("the same", "rs.yaml"));
    }

    private void replayWhole(int threads) throws InterruptedException {
        try (KeptFiles files = begin()) {
            replay(threads, files);
            files.finish();
        }
    }

    private <T extends org.apache.avro.specific.SpecificRecordBase> List<T> read(String file, Class<T> type)
            throws IOException {
        List<T> records = new ArrayList<>();
        try (DataFileReader<T> reader =
                new DataFileReader<>(kept.resolve(file).toFile(), new SpecificDatumReader<>(type))) {
            reader.forEach(records::add);
        }
        return records;
    }

    @Test
    void shouldKeepTheRecordedBatchesWhereTheCorrectionsAreTheRunsOwn() throws Exception {
        replayWhole(1);
        var deserializer = AvroSerde.of(LearnerBatch.class, run.registry()).deserializer();
        List<LearnerBatch> recorded = run.of(Samples.TOPICS.batches()).values().stream()
                .map(record -> deserializer.deserialize(record.topic(), record.value()))
                .toList();

        assertThat(read("the_same/batches.avro", LearnerBatch.class)).hasSize(2).isEqualTo(recorded);
    }

    @Test
    void shouldKeepWhatOtherCorrectionsDecideWithTheTrajectoriesInTheOrderOfTheEntries() throws Exception {
        replayWhole(1);
        List<LearnerBatch> batches = read("rs.yaml/batches.avro", LearnerBatch.class);
        List<Trajectory> trajectories = read("rs.yaml/trajectories.avro", Trajectory.class);

        assertThat(batches).extracting(LearnerBatch::getBatchId).containsExactly(0L, 1L);
        BatchEntry rejected = batches.get(0).getEntries().get(1);
        assertThat(rejected.getMaskedBy()).isEqualTo("rollout_correction");
        assertThat(PackedMask.toArray(rejected.getMask())).containsOnly((byte) 0);
        assertThat(batches.get(0).getTrainedTokens()).isEqualTo(3);
        assertThat(trajectories).extracting(Trajectory::getRolloutId).containsExactly("g0/0", "g0/1", "g1/0", "g1/1");
        float[] weights = PackedFloats.toArray(rejected.getWeights());
        assertThat(weights).hasSize(3).containsOnly((float)
                Math.exp(-3)); // made before the rejection took the sequence
    }

    @Test
    void shouldKeepTheSameWithAnyNumberOfThreads() throws Exception {
        replayWhole(1);
        List<LearnerBatch> batches = read("rs.yaml/batches.avro", LearnerBatch.class);
        List<Trajectory> trajectories = read("rs.yaml/trajectories.avro", Trajectory.class);
        replayWhole(4);

        assertThat(read("rs.yaml/batches.avro", LearnerBatch.class)).isEqualTo(batches);
        assertThat(read("rs.yaml/trajectories.avro", Trajectory.class)).isEqualTo(trajectories);
    }

    @Test
    void shouldBeReadableWithoutOurClasses() throws Exception {
        replayWhole(1);
        try (DataFileReader<GenericRecord> reader =
                new DataFileReader<>(kept.resolve("rs.yaml/batches.avro").toFile(), new GenericDatumReader<>())) {
            assertThat(reader.next().get("trained_tokens")).isEqualTo(3L);
        }
    }

    @Test
    void shouldNotLookLikeAResultBeforeAllOfItIsThere() throws Exception {
        replayWhole(1);
        try (KeptFiles files = begin()) {
            replay(1, files);
            assertThat(files.steps()).isEqualTo(2);
        }
        try (var left = Files.list(kept.resolve("rs.yaml"))) {
            assertThat(left.map(file -> file.getFileName().toString()))
                    .containsExactlyInAnyOrder("batches.avro.unfinished", "trajectories.avro.unfinished");
        }
    }

    @Test
    void shouldReplaceWhatItKeptBeforeAndNameWhatOthersKept() throws Exception {
        Path relative = Path.of("").toAbsolutePath().relativize(kept);
        try (KeptFiles files = new KeptFiles(relative, List.of("another", "rs.yaml"))) {
            replay(1, files);
            files.finish();
            assertThat(files.others()).isEmpty();
        }
        List<LearnerBatch> batches = read("rs.yaml/batches.avro", LearnerBatch.class);
        try (KeptFiles files = begin()) {
            replay(1, files);
            files.finish();
            assertThat(files.others()).containsExactly("another");
        }
        assertThat(read("rs.yaml/batches.avro", LearnerBatch.class)).isEqualTo(batches);
        assertThat(kept.resolve("rs.yaml").toFile().list())
                .containsExactlyInAnyOrder("batches.avro", "trajectories.avro");
    }

    @Test
    void shouldRefuseTwoAlternativesOfOneFolderAndLeaveNone() {
        assertThatThrownBy(() -> new KeptFiles(kept, List.of("a b", "a_b")))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("[a b, a_b] become [a_b, a_b]");
        assertThat(KeptFiles.folderOf("../x")).isEqualTo("_.._x");
    }
}
