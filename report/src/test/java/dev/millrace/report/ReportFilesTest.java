package dev.millrace.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReportFilesTest {
    private static final List<String> NAMES = List.of("page.html", "steps.csv", "extra.csv");

    @TempDir
    private Path folder;

    private static void report(Path place, String text, String... names) throws IOException {
        try (ReportFolder files = ReportFolder.begin(place, NAMES)) {
            for (String name : names) {
                Files.writeString(files.file(name), text);
            }
            files.finish();
        }
    }

    @Test
    void shouldLeaveNothingThatLooksWholeWhenItIsInterrupted() throws IOException {
        Path place = folder.resolve("report");
        try (ReportFolder files = ReportFolder.begin(place, NAMES)) {
            Files.writeString(files.file("page.html"), "half");
            assertThat(place).doesNotExist();
        }
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void shouldReplaceAnEarlierReportAsAWholeAndNothingElse() throws IOException {
        Path place = folder.resolve("report");
        report(place, "old", "page.html", "steps.csv", "extra.csv");
        Files.writeString(place.resolve("mine.txt"), "a note");
        report(place, "new", "page.html", "steps.csv");
        assertThat(place.toFile().list()).containsExactlyInAnyOrder("page.html", "steps.csv", "mine.txt");
        assertThat(place.resolve("page.html")).hasContent("new");
        assertThat(folder.toFile().list()).containsExactly("report");
    }

    @Test
    void shouldKeepTheEarlierReportUntilTheNextIsWhole() throws IOException {
        Path place = folder.resolve("report");
        report(place, "old", "page.html");
        try (ReportFolder files = ReportFolder.begin(place, NAMES)) {
            Files.writeString(files.file("page.html"), "half");
        }
        assertThat(place.resolve("page.html")).hasContent("old");
    }

    @Test
    void shouldTakeOverWhatAKillLeft() throws IOException {
        Path place = folder.resolve("report");
        Files.writeString(
                Files.createDirectory(folder.resolve("report" + WholeFile.UNFINISHED))
                        .resolve("page.html"),
                "half");
        report(place, "new", "steps.csv");
        assertThat(place.toFile().list()).containsExactly("steps.csv");
    }

    @Test
    void shouldRefuseAFileInItsPlace() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "");
        assertThatThrownBy(() -> ReportFolder.begin(file, NAMES)).hasMessage(file + " is a file");
    }

    @Test
    void shouldGiveAFileItsNameOnlyWhenItIsWhole() throws IOException {
        Path file = folder.resolve("new/run.png");
        assertThatThrownBy(() -> WholeFile.write(file, beside -> {
                    Files.writeString(beside, "half");
                    throw new IOException("killed");
                }))
                .hasMessage("killed");
        assertThat(file.getParent()).isEmptyDirectory();
        WholeFile.write(file, "whole");
        assertThat(file).hasContent("whole");
    }

    @Test
    void shouldWriteCsvWithEmptyFieldsForWhatIsAbsent() throws IOException {
        Path file = folder.resolve("rows.csv");
        List<Column<Double>> columns =
                List.of(Column.text("The name", value -> "a, \"b\""), Column.number("value", 2, value -> value));
        CsvFile.write(file, columns, List.of(0.123456789, Double.NaN));
        assertThat(file).hasContent("""
                        the_name,value
                        "a, ""b""\",0.123456789
                        "a, ""b""\",
                        """);
    }

    @Test
    void shouldAppendRowsAsIfTheyHadBeenWrittenAtOnce() throws IOException {
        Path file = folder.resolve("rows.csv");
        List<Column<Double>> columns = List.of(Column.number("value", 2, value -> value));
        CsvFile.write(file, columns, List.of(1.5));
        CsvFile.append(file, columns, List.of(2.5, Double.NaN));
        CsvFile.append(file, columns, List.of());
        CsvFile.append(file, columns, List.of(3.5));

        Path whole = folder.resolve("whole.csv");
        CsvFile.write(whole, columns, List.of(1.5, 2.5, Double.NaN, 3.5));
        assertThat(file).hasSameTextualContentAs(whole);
    }
}
