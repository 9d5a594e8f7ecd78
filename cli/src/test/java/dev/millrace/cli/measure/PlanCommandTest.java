package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class PlanCommandTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @TempDir
    private Path directory;

    private int plan(String... more) {
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        return command.execute(Stream.concat(
                        Stream.of("plan", "--generators", "1000", "--tokens-per-second", "1e6", "--policies", "1"),
                        Stream.of(more))
                .toArray(String[]::new));
    }

    @Test
    void shouldPlanFromTheFiguresThatItWasBuiltWith() throws IOException {
        assertThat(plan("--json")).as(err.toString()).isZero();

        JsonNode plan = new ObjectMapper().readTree(out.toString());
        assertThat(plan.at("/load/tokens_per_second").asDouble()).isEqualTo(1e6);
        assertThat(plan.path("figures")).isNotEmpty();
        assertThat(plan.path("lines")).isNotEmpty().allSatisfy(line -> {
            assertThat(line.path("value").asDouble()).isPositive().isFinite();
            assertThat(line.path("factor").asDouble()).isGreaterThanOrEqualTo(1);
            assertThat(line.path("measured").asText()).isNotEmpty();
            assertThat(line.path("extrapolated").asText().isEmpty())
                    .isEqualTo(line.path("factor").asDouble() == 1);
        });
    }

    @Test
    void shouldSayOfEachLineWhatWasMeasured() {
        assertThat(plan()).as(err.toString()).isZero();

        assertThat(out.toString().replaceAll("\\s+", " "))
                .contains(
                        "1,000 generators, 1,000,000 tokens/s",
                        "topology instances: ",
                        "extrapolated: 3 copies, measured 1");
    }

    @Test
    void shouldNotPlanWithoutFigures() throws IOException {
        Path none = directory.resolve("none.json");
        assertThat(plan("--from", none.toString())).isEqualTo(1);
        assertThat(err.toString())
                .contains(
                        "cannot plan without growth figures: there is no " + none,
                        "./millrace load-test growth --report DIR");

        Path other = Files.writeString(directory.resolve("other.json"), "{\"origin\": null, \"measured\": []}");
        assertThat(plan("--from", other.toString())).isEqualTo(1);
        assertThat(err.toString())
                .contains(other + " is not a growth.json", "it lacks origin, base, measured or growth");
    }
}
