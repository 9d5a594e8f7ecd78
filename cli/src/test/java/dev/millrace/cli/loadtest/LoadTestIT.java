package dev.millrace.cli.loadtest;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.loadtests.page.ReportFiles;
import dev.millrace.loadtests.point.PointResult;
import dev.millrace.loadtests.report.JsonFile;
import dev.millrace.loadtests.sweep.LoadReport;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** A whole load test, tiny: a baseline, two points, a report, and the report compared with itself. */
class LoadTestIT {
    @TempDir
    Path directory;

    private static String run(int status, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        assertThat(command.execute(arguments)).as(out + "\n" + err).isEqualTo(status);
        return out + "\n" + err;
    }

    @Test
    void shouldMeasureAndReport() throws Exception {
        Path workload = Files.writeString(directory.resolve("tiny.yaml"), """
            warm_up_seconds: 1
            seconds: 4
            load: {generators: 2}
            rollouts: {group_size: 4, response_tokens: {kind: uniform, least: 8, most: 40}}
            learner: {step_ms: {kind: fixed, value: 10, least: 10, most: 10}}
            backlog: {rollouts: 40}
            topology: {batch: {sequences: 8}}
            topics: {partitions: 2}
            sweep: {load.rollouts_per_second: [20, 40]}
            """);
        Path report = directory.resolve("report");
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("broker"))) {
            String said = run(0, "load-test", "--workload", workload.toString(), "--report", report.toString(),
                "--bootstrap-servers", broker.bootstrapServers());
            assertThat(said).contains("baseline: one generator publishes").contains("knee");
        }
        LoadReport measured = JsonFile.read(report.resolve(ReportFiles.JSON), LoadReport.class);
        assertThat(measured.curves()).hasSize(1);
        assertThat(measured.curves().get(0).points()).hasSize(2).allSatisfy(LoadTestIT::requirePlausible);
        assertThat(measured.curves().get(0).baseline().copyMegabytesPerSecond()).isPositive();
        assertThat(report.resolve("report.html")).isNotEmptyFile();
        assertThat(report.resolve("points.csv")).isNotEmptyFile();
        assertThat(run(0, "load-test", "--compare", report.toString(), report.toString())).contains("within noise");
    }

    private static void requirePlausible(PointResult point) {
        assertThat(point.achieved()).isPositive();
        assertThat(point.drainSeconds()).as("the backlog was worked off").isPositive();
        assertThat(point.endToEnd().count()).isPositive();
        assertThat(point.endToEnd().p99()).isGreaterThanOrEqualTo(point.added().p50());
        assertThat(point.lags()).isNotEmpty();
        assertThat(point.lags().get(0).records()).hasSize(2 * 2 + 1);
        assertThat(point.ess()).isBetween(0.0, 1.0);
        assertThat(point.trainedShare()).isBetween(0.01, 1.0);
    }

    @Test
    void shouldSayWhatIsMissing() {
        assertThat(run(2, "load-test")).contains("--workload FILE and --report DIR are needed");
        assertThat(run(1, "load-test", "--compare", directory.toString(), directory.toString())).contains("there is no report in");
        assertThat(run(2, "load-test", "--workload", directory.resolve("none.yaml").toString(), "--report", directory.toString()))
            .contains("there is no configuration file");
    }
}
