package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.conformance.ConformanceFamilies;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;

/** Every family against its golden cases, as {@code millrace conformance --check} runs them. */
class GoldenConformanceTest {
    private static final Path GOLDEN = Path.of("..", "corrections", "src", "test", "resources", "golden");

    @TempDir
    private Path directory;

    static Set<String> families() {
        return ConformanceFamilies.all().names();
    }

    @ParameterizedTest
    @MethodSource("families")
    void shouldAgreeWithEveryGoldenCase(String family) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = new CommandLine(new ConformanceCommand());
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));

        int exit = command.execute(
                "--cases",
                GOLDEN.resolve(family + ".json").toString(),
                "--out",
                directory.resolve("results.json").toString(),
                "--check");

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(out.toString()).containsPattern(family + " +[1-9]");
    }

    @Test
    void shouldRefuseDroWithoutItsLeash() throws IOException {
        ObjectMapper json = new ObjectMapper();
        ObjectNode file =
                (ObjectNode) json.readTree(GOLDEN.resolve("policy_loss.json").toFile());
        ObjectNode dro = (ObjectNode) StreamSupport.stream(file.get("cases").spliterator(), false)
                .filter(golden -> golden.at("/config/loss_mode").asText().equals("dro"))
                .findFirst()
                .orElseThrow();
        ((ObjectNode) dro.get("config")).remove("dro_beta");
        file.putArray("cases").add(dro);
        json.writeValue(directory.resolve("cases.json").toFile(), file);

        new CommandLine(new ConformanceCommand())
                .execute(
                        "--cases",
                        directory.resolve("cases.json").toString(),
                        "--out",
                        directory.resolve("results.json").toString());

        assertThat(Files.readString(directory.resolve("results.json"))).contains("loss_mode dro needs dro_beta");
    }
}
