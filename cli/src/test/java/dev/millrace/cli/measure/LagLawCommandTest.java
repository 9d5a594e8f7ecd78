package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class LagLawCommandTest {
    @Test
    void shouldRunTheLagsAndWriteTheLaw(@TempDir Path folder) throws IOException {
        StringWriter said = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(said)).setErr(new PrintWriter(said));
        Path report = folder.resolve("law");
        assertThat(command.execute(
                        "experiment",
                        "lag-law",
                        "--lags",
                        "0,1,2,4",
                        "--steps",
                        "16",
                        "--seeds",
                        "1",
                        "--warm-up",
                        "1",
                        "--batch-sequences",
                        "16",
                        "--learning-rate",
                        "1e-2",
                        "--report",
                        report.toString()))
                .as(said.toString())
                .isZero();
        assertThat(said.toString()).containsPattern("\n +4  ").contains("L = c ESS^alpha: c = ", "R^2 of log ESS: ");
        JsonNode law =
                new ObjectMapper().readTree(report.resolve("lag-law.json").toFile());
        assertThat(law.at("/law/runs").asInt()).isEqualTo(3);
        assertThat(law.at("/runs")).hasSize(4);
        assertThat(ImageIO.read(report.resolve("lag-law.png").toFile()).getWidth())
                .isGreaterThan(500);
        String again = folder.resolve("again").toString();
        assertThat(command.execute(
                        "experiment",
                        "lag-law",
                        "--rows",
                        report.resolve("lag-law.json").toString(),
                        "--report",
                        again))
                .as(said.toString())
                .isZero();
        assertThat(Path.of(again, "lag-law.json")).hasSameTextualContentAs(report.resolve("lag-law.json"));
        assertThat(command.execute("experiment", "lag-law", "--lags", "1,2", "--report", report.toString()))
                .isEqualTo(2);
        assertThat(said.toString()).contains("--lags must contain 0");
    }
}
