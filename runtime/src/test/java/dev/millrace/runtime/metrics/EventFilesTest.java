package dev.millrace.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.log.Alarm;
import dev.millrace.log.Alarms;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.metrics.EventFiles.EventFraming;
import dev.millrace.runtime.metrics.EventFiles.EventRecord;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.report.StepRows;
import dev.millrace.schemas.run.RunIdentity;
import io.micrometer.core.instrument.Tags;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EventFilesTest {
    private static final RunIdentity RUN = new RunIdentity("r-1", 0, "policy");

    @TempDir
    private Path folder;

    private final Alarms alarms = new Alarms();

    private void write(int from, int to) {
        try (EventFiles files = EventFiles.open(EventFiles.ofRun(folder, RUN), alarms)) {
            for (int step = from; step <= to; step++) {
                write(files, StepRows.of(step, Map.of("entropy", 1.0 / step)));
            }
        }
    }

    private static void write(EventFiles files, StepRow step) {
        files.write(step.step(), step.finishedAtMs() / 1e3, StepReadings.of(step));
    }

    private List<Path> files() throws IOException {
        try (Stream<Path> files = Files.list(folder.resolve("r-1"))) {
            return files.filter(file -> file.getFileName().toString().contains("tfevents"))
                    .sorted()
                    .toList();
        }
    }

    private List<WrittenEvent> events() throws IOException {
        return WrittenEvent.ofRun(folder.resolve("r-1"));
    }

    private static Reading reading(String curve, double value) {
        return new Reading("m", Tags.empty(), "", "", curve, value);
    }

    /** Bytes by an encoder of another language; the first twelve are the header of every TensorFlow file. */
    @Test
    void shouldWriteRecordsAsTensorFlowDoes() {
        assertThat(hex(EventFraming.framed(EventRecord.ofVersion(1.5))))
                .isEqualTo("1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
        assertThat(hex(EventFraming.framed(EventRecord.ofStep(
                        1.5, 7, List.of(reading("actor/entropy", 0.25), reading("step/ess_ratio", 0.5))))))
                .isEqualTo(
                        "3a000000000000001295eae209000000000000f83f10072a2d0a140a0d6163746f722f656e74726f7079150000803e"
                                + "0a150a0e737465702f6573735f726174696f150000003faef545e1");
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    @Test
    void shouldWriteEveryStepOnceWithItsTimeUnderVerlsNames() throws IOException {
        write(1, 3);

        assertThat(files()).hasSize(1);
        List<WrittenEvent> events = events();
        assertThat(events.get(0).version()).isEqualTo("brain.Event:2");
        assertThat(events).extracting(WrittenEvent::step).containsExactly(0L, 1L, 2L, 3L);
        assertThat(events.get(2).wallSeconds()).isEqualTo(3.5);
        assertThat(events.get(2).values())
                .containsEntry("actor/entropy", 0.5f)
                .containsEntry("critic/score/mean", 0.25f)
                .containsEntry("step/trained_share", 0.25f)
                .doesNotContainKeys("step/finished_at_ms", "step/idle_ratio");
    }

    @Test
    void shouldGoOnWhereAKilledProcessHasStoppedWithoutAStepTwice() throws IOException {
        write(1, 3);
        byte[] whole = Files.readAllBytes(files().get(0));
        byte[] fourth = EventFraming.framed(EventRecord.ofStep(4.5, 4, List.of(reading("actor/entropy", 0.25))));
        Files.write(files().get(0), Arrays.copyOf(fourth, fourth.length - 1), StandardOpenOption.APPEND);

        write(1, 5);

        assertThat(files()).hasSize(2);
        assertThat(Files.readAllBytes(files().get(0))).startsWith(whole);
        assertThat(events().stream().filter(event -> event.step() > 0))
                .extracting(WrittenEvent::step)
                .containsExactly(1L, 2L, 3L, 4L, 5L);
        write(1, 5);
        assertThat(files()).as("nothing was new").hasSize(2);
        write(1, 6);
        write(1, 7);
        assertThat(events().stream().filter(event -> event.step() > 0))
                .extracting(WrittenEvent::step)
                .containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L);
    }

    @Test
    void shouldGiveEachEpochAFolder() {
        EventFiles.open(EventFiles.ofRun(folder, new RunIdentity("r-1", 2, "policy")), alarms)
                .close();

        assertThat(folder.resolve("r-1-epoch-2")).isDirectory();
    }

    @Test
    void shouldRefuseASecondWriterAndAFolderThatCannotBe() throws IOException {
        try (EventFiles first = EventFiles.open(EventFiles.ofRun(folder, RUN), alarms)) {
            assertThatThrownBy(() -> EventFiles.open(EventFiles.ofRun(folder, RUN), alarms))
                    .isInstanceOf(RefusedRequestException.class)
                    .hasMessageContaining("another process writes TensorBoard's files to " + folder.resolve("r-1"));
            write(first, StepRows.of(1, Map.of()));
        }
        Path file = Files.writeString(folder.resolve("file"), "");
        assertThatThrownBy(() -> EventFiles.open(EventFiles.ofRun(file, RUN), alarms))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageContaining("metrics.tensorboard.directory");
    }

    @Test
    void shouldSayThatStepsAreMissingAndWriteThemAtTheNextStart() throws IOException {
        try (EventFiles files = EventFiles.open(EventFiles.ofRun(folder, RUN), alarms)) {
            Path moved = folder.resolve("moved");
            Files.move(folder.resolve("r-1"), moved);
            write(files, StepRows.of(1, Map.of()));
            write(files, StepRows.of(2, Map.of()));

            assertThat(alarms.active()).extracting(Alarm::name).containsExactly("curves-unwritten");
            Files.move(moved, folder.resolve("r-1"));
        }
        write(1, 2);
        assertThat(events()).extracting(WrittenEvent::step).containsExactly(0L, 1L, 2L);
    }
}
