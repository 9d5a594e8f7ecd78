package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LoadTestCommandTest {
    @TempDir
    private Path directory;

    private static String run(int status, String... arguments) {
        StringWriter said = new StringWriter();
        PrintWriter writer = new PrintWriter(said);
        assertThat(Main.commandLine().setOut(writer).setErr(writer).execute(arguments))
                .as(said.toString())
                .isEqualTo(status);
        return said.toString();
    }

    @Test
    void shouldSayWhatIsMissing() {
        assertThat(run(2, "load-test")).contains("--workload FILE and --report DIR are needed");
        assertThat(run(1, "load-test", "--compare", directory.toString(), directory.toString()))
                .contains("there is no report in");
        assertThat(run(
                        2,
                        "load-test",
                        "--workload",
                        directory.resolve("none.yaml").toString(),
                        "--report",
                        directory.toString()))
                .contains("there is no configuration file");
    }

    @Test
    void shouldRefuseDurabilityThatItCannotKeep() throws IOException {
        Path workload = Files.writeString(
                directory.resolve("durable.yaml"), "closed: {seconds: 5}\nbroker: {durability: versions}");
        String[] command = {"load-test", "--workload", workload.toString(), "--report", directory.toString()};

        assertThat(run(1, with(command, "--bootstrap-servers", "127.0.0.1:1")))
                .contains("cannot keep broker.durability versions", "a cluster given with --bootstrap-servers");
        assertThat(run(1, with(command, "--brokers", "3")))
                .contains("cannot keep broker.durability versions", "on 3 brokers, expected one broker");
    }

    private static String[] with(String[] command, String... more) {
        return Stream.concat(Stream.of(command), Stream.of(more)).toArray(String[]::new);
    }

    @Test
    void shouldRefusePartsAndFoldersThatAreNotThere() {
        String[] figures = {"load-test", "figures", "--report", directory.toString()};

        assertThat(run(2, with(figures, "--workloads", "../load-tests/workloads", "--only", "knee", "kneee")))
                .contains("--only must name parts: kneee, expected topology, replay,");
        assertThat(run(1, with(figures, "--workloads", directory.resolve("none").toString())))
                .contains("cannot measure figures: there is no folder", "--workloads");
    }
}
