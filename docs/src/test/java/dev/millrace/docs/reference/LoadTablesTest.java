package dev.millrace.docs.reference;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.workloads.Figure;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The tables of figures in the documents agree with the committed reports. */
class LoadTablesTest {
    @Test
    void shouldSayWhatTheReportsSay() throws IOException {
        for (Map.Entry<String, Map<String, String>> each : LoadTables.all().entrySet()) {
            requireCurrent(Path.of(each.getKey()), each.getValue());
        }
    }

    @Test
    void shouldReadOnlyReportsThatOneCommandMeasures() throws IOException {
        assertThat(Figure.all(Path.of("..", "load-tests", "workloads")))
                .extracting(Figure::report)
                .containsAll(LoadTables.reports());
    }

    private static void requireCurrent(Path file, Map<String, String> tables) throws IOException {
        String page = Files.readString(file);
        String written = page;
        for (Map.Entry<String, String> table : tables.entrySet()) {
            String marker = "<!-- table: " + table.getKey() + " -->\n\n";
            int begin = written.indexOf(marker) + marker.length();
            assertThat(begin).as(file + ": " + marker).isGreaterThan(marker.length());
            int end = written.indexOf("\n\n", begin) + 1;
            written = written.substring(0, begin) + table.getValue() + written.substring(end);
        }
        if (Boolean.getBoolean("millrace.write.reference")) {
            Files.writeString(file, written);
            return;
        }
        assertThat(page.equals(written))
                .as(
                        "docs/" + file + " is not what load-tests/results say; write it anew: ./mvnw -pl docs -am test"
                                + " -Dtest=LoadTablesTest -Dsurefire.failIfNoSpecifiedTests=false -Dmillrace.write.reference=true")
                .isTrue();
    }
}
