package dev.millrace.docs.reference;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The tables of {@code docs/measurements/load.md} agree with the committed reports. */
class LoadTablesTest {
    private static final Path PAGE = Path.of("measurements", "load.md");

    @Test
    void shouldSayWhatTheReportsSay() throws IOException {
        String page = Files.readString(PAGE);
        String written = page;
        for (Map.Entry<String, String> table : LoadTables.all().entrySet()) {
            String marker = "<!-- table: " + table.getKey() + " -->\n\n";
            int begin = written.indexOf(marker) + marker.length();
            assertThat(begin).as(marker).isGreaterThan(marker.length());
            int end = written.indexOf("\n\n", begin) + 1;
            written = written.substring(0, begin) + table.getValue() + written.substring(end);
        }
        if (Boolean.getBoolean("millrace.write.reference")) {
            Files.writeString(PAGE, written);
            return;
        }
        assertThat(page.equals(written))
                .as(
                        "docs/measurements/load.md is not what load-tests/results say; write it anew: ./mvnw -pl docs -am test"
                                + " -Dtest=LoadTablesTest -Dsurefire.failIfNoSpecifiedTests=false -Dmillrace.write.reference=true")
                .isTrue();
    }
}
