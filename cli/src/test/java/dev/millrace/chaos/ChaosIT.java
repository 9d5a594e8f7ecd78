package dev.millrace.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Faults on real processes; {@code ./mvnw verify -Pfaults} runs it. */
@Tag("faults")
@Timeout(900)
class ChaosIT {
    private static final String ARGUMENTS = "millrace.chaos";

    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void shouldKeepEveryPromiseUnderASeededSeriesOfFaults(int brokers) throws Exception {
        JsonNode report =
                chaos("--minutes", "10", "--faults", "6", "--seed", "16", "--brokers", Integer.toString(brokers));

        assertThat(report.path("faults")).hasSize(6);
        assertThat(report.path("lost").asLong()).isZero();
        assertThat(report.path("duplicated").asLong()).isZero();
    }

    /** Each once: a member suspended for 70 s, the broker away for 58 s, 120 s of silence. */
    @Test
    void shouldGoOnAfterWhatIsLongerThanAnyTimeout() throws Exception {
        JsonNode report =
                chaos("--minutes", "10", "--faults", "3", "--only", "pause-long,broker-away-long,network-silent-long");

        assertThat(report.path("faults")).hasSize(3);
        assertThat(report.path("lost").asLong()).isZero();
        assertThat(report.path("duplicated").asLong()).isZero();
    }

    /** Members end before and after commits, offsets, manifests and loads. */
    @Test
    void shouldGoOnFromEveryPointOfItsProtocols() throws Exception {
        JsonNode report = chaos("--minutes", "5", "--faults", "14", "--only", "halt-protocol");

        assertThat(report.path("lost").asLong()).isZero();
        assertThat(report.path("duplicated").asLong()).isZero();
        for (JsonNode fault : report.path("faults")) {
            assertThat(fault.path("notes").toString()).doesNotContain("did not come to");
        }
    }

    /** {@code -Dmillrace.chaos='--minutes 60 --brokers 3 --report /tmp/chaos.json'} names the faults. */
    @Test
    @EnabledIfSystemProperty(named = ARGUMENTS, matches = ".+")
    @Timeout(value = 5, unit = TimeUnit.HOURS)
    void shouldKeepEveryPromiseUnderTheGivenFaults() {
        String arguments = "chaos " + System.getProperty(ARGUMENTS).strip();

        assertThat(ChaosCommand.commandLine().execute(arguments.split("\\s+"))).isZero();
    }

    private JsonNode chaos(String... arguments) throws Exception {
        Path report = directory.resolve("report.json");
        List<String> all = new ArrayList<>(
                List.of("chaos", "--dir", directory.resolve("run").toString()));
        all.addAll(List.of("--report", report.toString()));
        all.addAll(List.of(arguments));
        StringWriter out = new StringWriter();
        PrintWriter printed = new PrintWriter(out);

        int status = ChaosCommand.commandLine().setOut(printed).setErr(printed).execute(all.toArray(String[]::new));

        assertThat(status).as(out.toString()).isZero();
        return new ObjectMapper().readTree(report.toFile());
    }
}
