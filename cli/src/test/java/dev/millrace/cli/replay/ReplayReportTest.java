package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.runtime.RefusedRequestException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReplayReportTest {
    private static final List<String> NAMES = List.of("recorded");

    @TempDir
    private Path folder;

    private void replay(long steps) throws Exception {
        ReplayTotals totals = new ReplayTotals(NAMES);
        ReplayReport.begin(folder);
        try (StepsCsv csv = new StepsCsv(folder.resolve(ReplayReport.STEPS), NAMES)) {
            for (long batch = 0; batch < steps; batch++) {
                totals.add(ReplayTotalsTest.step(batch, 1));
                csv.write(ReplayTotalsTest.step(batch, 1));
            }
            csv.finish();
        }
        ReplayReport.write(folder, "a-run", totals, new PrintWriter(System.err));
    }

    private List<String> names() {
        return List.of(folder.toFile().list()).stream()
                .filter(name -> !name.endsWith(".png"))
                .sorted()
                .toList();
    }

    @Test
    void shouldWriteALineForEachStepAndThePage() throws Exception {
        replay(3);
        assertThat(names()).containsExactly("report.html", "report.json", "steps.csv");
        assertThat(Files.readAllLines(folder.resolve("steps.csv"))).hasSize(1 + 3);
        replay(2);
        assertThat(Files.readAllLines(folder.resolve("steps.csv"))).hasSize(1 + 2);
    }

    @Test
    void shouldLeaveNothingThatLooksLikeAResultWhenItIsInterrupted() throws Exception {
        replay(3);
        Files.writeString(folder.resolve("mine.txt"), "a note");
        ReplayReport.begin(folder);
        try (StepsCsv csv = new StepsCsv(folder.resolve(ReplayReport.STEPS), NAMES)) {
            csv.write(ReplayTotalsTest.step(0, 1));
        }
        assertThat(folder.toFile().list()).containsExactlyInAnyOrder("mine.txt", "steps.csv.unfinished");
        replay(1);
        assertThat(names()).containsExactly("mine.txt", "report.html", "report.json", "steps.csv");
    }

    @Test
    void shouldSayWhereItCannotWrite() throws Exception {
        Path file = Files.writeString(folder.resolve("file"), "");
        assertThatThrownBy(() -> ReplayReport.begin(file))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageStartingWith("cannot begin a report in " + file);
    }
}
