package dev.millrace.cli.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.conformance.ConformanceFamilies;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.Set;
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
}
