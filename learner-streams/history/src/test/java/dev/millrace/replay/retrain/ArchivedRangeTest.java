package dev.millrace.replay.retrain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.replay.MemoryRun;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.HeldRange;
import dev.millrace.replay.archive.RangeSelection;
import dev.millrace.replay.archive.RecordedRun.Range;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.archive.RunExport;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.weights.WeightsConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two steps of a run, exported: relearning from the files alone, and handling of damaged ones. */
class ArchivedRangeTest {
    private static final Variant OWN = RetrainingTest.variant("recorded", Algorithm.defaults(), 1e-2);
    private static final LearntRun LEARNT = new LearntRun(OWN);

    @TempDir
    private Path directory;

    private Path archive;

    @BeforeEach
    void export() {
        archive = directory.resolve("some-steps");
        new RunExport(LEARNT.run)
                .to(
                        archive,
                        new RangeSelection(LEARNT.run, WeightsConfig.defaults())
                                .select(batch -> batch.getBatchId() >= 2, Long.MIN_VALUE, Long.MAX_VALUE));
    }

    private List<Path> files() throws IOException {
        try (Stream<Path> files = Files.list(archive)) {
            return files.filter(file -> file.toString().endsWith(".avro") && size(file) > 0)
                    .sorted()
                    .toList();
        }
    }

    private static long size(Path file) {
        return file.toFile().length();
    }

    private void requireRefused(Path file, String how) {
        assertThatThrownBy(() -> {
                    try (ArchivedRun run = new ArchivedRun(archive)) {
                        run.verify();
                    }
                })
                .as(how + " " + file.getFileName())
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining(file.toString())
                .hasMessageMatching(
                        "(?s).*(was modified after the export: its SHA-256 is [0-9a-f]{64}, the index"
                                + " says [0-9a-f]{64}; copy the archive again|cannot read .*, which the archive's index names.*)");
    }

    @Test
    void shouldHoldWhatItsStepsAreLearntAgainFrom() {
        try (ArchivedRun run = new ArchivedRun(archive)) {
            run.verify();
            assertThat(run.isWhole()).isFalse();
            assertThat(run.range(new TopicPartition("test.prompts", 0)).from())
                    .as("groups of the two batches before are not in it")
                    .isEqualTo(6);
            RetrainingTest.Heard heard = RetrainingTest.retrain(run, Optional.empty(), 2, LearntRun.STEPS, OWN);
            assertThat(heard.of(0)).hasSize(2).allMatch(VariantStep::isAsRecorded);
            assertThatThrownBy(() -> RetrainingTest.retrain(run, Optional.empty(), 1, LearntRun.STEPS, OWN))
                    .hasMessageContaining("the batch that made version 2 is not on test.batches");
        }
    }

    private static void put(MemoryRun run, long offset, ProducerRecord<byte[], byte[]> letter) {
        run.put(new ConsumerRecord<>(
                letter.topic(),
                0,
                offset,
                0L,
                TimestampType.CREATE_TIME,
                0,
                0,
                letter.key(),
                letter.value(),
                letter.headers(),
                Optional.empty()));
    }

    @Test
    void shouldHoldTheLettersOfRefusedBatchesInBetween() {
        MemoryRun run = new LearntRun(OWN).run;
        String batches = run.topics().batches();
        ConsumerRecord<byte[], byte[]> last =
                Objects.requireNonNull(run.of(batches).remove(3L));
        run.put(new ConsumerRecord<>(batches, 0, 4, last.key(), last.value()));
        ConsumerRecord<byte[], byte[]> early = run.of(batches).get(1L);
        run.put(new ConsumerRecord<>(batches, 0, 3, early.key(), early.value()));
        Refusal refusal = Refusal.of(RefusalReason.IDENTITY, "batch_id", "it is another's");
        String letters = run.topics().deadLetters();
        List<ConsumerRecord<byte[], byte[]>> refused = List.of(
                Objects.requireNonNull(run.of(batches).get(0L)), // before the range
                Objects.requireNonNull(run.of(run.topics().trajectories()).get(0L)),
                Objects.requireNonNull(run.of(batches).get(3L)),
                Objects.requireNonNull(run.of(run.topics().trajectories()).get(1L)));
        for (int i = 0; i < refused.size(); i++) {
            put(run, i, DeadLetters.of(refused.get(i), refusal, run.run(), letters));
        }
        Path range = directory.resolve("with-letters");

        new RunExport(run)
                .to(
                        range,
                        new RangeSelection(run, WeightsConfig.defaults())
                                .select(batch -> batch.getBatchId() >= 2, Long.MIN_VALUE, Long.MAX_VALUE));

        try (ArchivedRun archived = new ArchivedRun(range)) {
            assertThat(archived.refused(batches).has(new TopicPartition(batches, 0), 3))
                    .isTrue();
            assertThat(archived.range(new TopicPartition(letters, 0))).isEqualTo(new Range(2, 3));
        }
    }

    @Test
    void shouldSayWhichStepsItHolds() {
        try (ArchivedRun run = new ArchivedRun(archive);
                RecordedVersions versions = new RecordedVersions(run, WeightsConfig.defaults())) {
            HeldRange held = run.held().orElseThrow();
            assertThat(VersionInterval.within(held, null, null, versions)).isEqualTo(new VersionInterval(2, 4));
            assertThat(VersionInterval.within(held, 3L, null, versions)).isEqualTo(new VersionInterval(3, 4));
            assertThatThrownBy(() -> VersionInterval.within(held, 1L, null, versions))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage(
                            "no step leads from version 1 to version 4; the archive holds the steps from version 2 to 4, and --from-version must be below --to-version");
            HeldRange untrained = new HeldRange(4, 5, 4, 4, -1, -1, -1, -1, "");
            assertThatThrownBy(() -> VersionInterval.within(untrained, null, null, versions))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageStartingWith("no step on one of the archive's batches, 4 to 5, is recorded");
        }
    }

    @Test
    void shouldHoldWhatItsRolloutsAreSampledAgainFrom() {
        try (ArchivedRun run = new ArchivedRun(archive)) {
            assertThat(FreshRolloutsTest.live(run, FreshRolloutsTest.recorded(LEARNT), 2, 0, OWN)
                            .of(0))
                    .hasSize(2)
                    .allSatisfy(step -> {
                        assertThat(step.isAsRecorded()).isTrue();
                        assertThat(step.rolloutsAsRecorded())
                                .as("by versions before the first too")
                                .isEqualTo(LearntRun.MEMBERS);
                    });
        }
    }

    @Test
    void shouldBeRefusedWithAByteChangedInAnyOfItsFiles() throws IOException {
        for (Path file : files()) {
            byte[] bytes = Files.readAllBytes(file);
            for (int at : new int[] {0, bytes.length / 2, bytes.length - 1}) {
                byte[] damaged = bytes.clone();
                damaged[at] ^= 1;
                Files.write(file, damaged);
                requireRefused(file, "byte " + at + " changed in");
            }
            Files.write(file, bytes);
        }
        try (ArchivedRun run = new ArchivedRun(archive)) {
            run.verify();
        }
    }

    @Test
    void shouldBeRefusedWithAnyOfItsFilesCutOffOrMissing() throws IOException {
        for (Path file : files()) {
            byte[] bytes = Files.readAllBytes(file);
            Files.write(file, Arrays.copyOf(bytes, bytes.length - 1));
            requireRefused(file, "cut off:");
            Files.delete(file);
            requireRefused(file, "missing:");
            Files.write(file, bytes);
        }
        assertThat(files())
                .extracting(file -> file.getFileName().toString())
                .contains(
                        "batches-0.avro",
                        "trajectories-0.avro",
                        "prompts-0.avro",
                        "policy-versions-0.avro",
                        "weights-0.avro",
                        "optimizer-state-0.avro");
    }

    @Test
    void shouldBeRefusedWithoutAnIndexOrWithOneThatIsCutOff() throws IOException {
        Path index = archive.resolve("index.json");
        byte[] bytes = Files.readAllBytes(index);
        Files.write(index, Arrays.copyOf(bytes, bytes.length / 2));
        assertThatThrownBy(() -> new ArchivedRun(archive))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("index.json");
        Files.delete(index);
        assertThatThrownBy(() -> new ArchivedRun(archive))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("index.json");
    }
}
