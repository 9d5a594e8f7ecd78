package dev.millrace.runtime.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.report.StepRows;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunResultsTest {
    private static final StepRow FIRST = StepRows.of(1, Map.of("loss", 0.5));
    private static final StepRow SECOND = StepRows.of(2, Map.of("loss", 0.25));
    private static final StepRow WITH_ANOTHER_METRIC = StepRows.of(3, Map.of("loss", 0.125, "surprise", 2.0));

    @TempDir
    private Path folder;

    @Test
    void shouldWriteTheSameFileInPartsAsAtOnce() throws Exception {
        List<List<StepRow>> growing = List.of(
                List.of(FIRST),
                List.of(FIRST, SECOND),
                List.of(FIRST, SECOND),
                List.of(FIRST, SECOND, WITH_ANOTHER_METRIC));
        try (RunDirectory parts = RunDirectory.open(folder.resolve("parts"));
                RunDirectory whole = RunDirectory.open(folder.resolve("whole"))) {
            RunResults results = new RunResults(parts);
            for (List<StepRow> steps : growing) {
                results.writeSteps(steps);
                new RunResults(whole).writeSteps(steps);
                assertThat(parts.steps()).hasSameTextualContentAs(whole.steps());
            }
            assertThat(Files.readAllLines(parts.steps()))
                    .hasSize(4)
                    .first()
                    .asString()
                    .endsWith(",surprise");
        }
    }

    @Test
    void shouldOnlyAppendRowsOfKnownMetrics() throws Exception {
        try (RunDirectory directory = RunDirectory.open(folder)) {
            RunResults results = new RunResults(directory);
            results.writeSteps(List.of(FIRST));
            Files.writeString(directory.steps(), "head\nfirst\n");
            results.writeSteps(List.of(FIRST, SECOND));
            assertThat(Files.readAllLines(directory.steps())).hasSize(3).startsWith("head", "first");
        }
    }

    @Test
    void shouldWriteEveryRowAgainWhereTheFileIsGone() throws Exception {
        try (RunDirectory directory = RunDirectory.open(folder)) {
            RunResults results = new RunResults(directory);
            results.writeSteps(List.of(FIRST));
            Files.delete(directory.steps());
            results.writeSteps(List.of(FIRST, SECOND));
            assertThat(Files.readAllLines(directory.steps())).hasSize(3);
        }
    }
}
