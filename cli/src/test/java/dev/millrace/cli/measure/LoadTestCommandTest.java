package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.workloads.Curve.LoadReport;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.OpenLoopReport;
import dev.millrace.workloads.PointResult;
import dev.millrace.workloads.closed.ClosedReport;
import dev.millrace.workloads.closed.ClosedRun;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** Whole load tests, tiny: a baseline, two points, a report, and the report compared with itself; a closed loop likewise. */
class LoadTestIT {
    @TempDir
    Path directory;

    @TempDir
    static Path brokerDirectory;

    private static EmbeddedBroker broker;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(brokerDirectory);
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

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
            seconds: 3
            load: {generators: 2}
            rollouts: {group_size: 4, response_tokens: {kind: uniform, least: 400, most: 600}}
            learner: {step_ms: {kind: fixed, value: 10, least: 10, most: 10}}
            backlog: {rollouts: 40}
            topology: {batch: {sequences: 8}}
            topics: {partitions: 2}
            sweep: {load.rollouts_per_second: [20, 40]}
            """);
        Path report = directory.resolve("report");
        String said = run(
                0,
                "load-test",
                "--workload",
                workload.toString(),
                "--report",
                report.toString(),
                "--bootstrap-servers",
                broker.bootstrapServers());
        assertThat(said).contains("baseline: 2 publishing: ").contains("knee");
        LoadReport measured = JsonFile.read(report.resolve(OpenLoopReport.JSON), LoadReport.class);
        assertThat(measured.curves()).hasSize(1);
        assertThat(measured.curves().get(0).points()).hasSize(2).allSatisfy(LoadTestIT::requirePlausible);
        assertThat(measured.curves().get(0).baseline().copyMegabytesPerSecond()).isPositive();
        assertThat(report.resolve("report.html")).isNotEmptyFile();
        assertThat(report.resolve("points.csv")).isNotEmptyFile();
        assertThat(run(0, "load-test", "--compare", report.toString(), report.toString()))
                .contains("within noise");
    }

    @Test
    void shouldHoldAnAsynchronousRunAgainstASynchronousOne() throws Exception {
        Path workload = Files.writeString(directory.resolve("closed.yaml"), """
            closed:
              seconds: 0
              tokens: 300
              over_steps: 2
              environment_ms: {kind: log_normal, value: 5, spread: 1, least: 0, most: 50}
              step_ms: {kind: fixed, value: 20, least: 20, most: 20}
              batch_sequences: 16
            model: {hidden_size: 16, layers: 1, heads: 2, kv_heads: 1, head_size: 8, intermediate_size: 32}
            admission: {group_size: 4}
            generator: {slots: 16}
            sweep: {admission.eta: [2]}
            """);
        Path report = directory.resolve("closed");
        run(
                0,
                "load-test",
                "--workload",
                workload.toString(),
                "--report",
                report.toString()); // on a broker that it starts
        ClosedReport measured = JsonFile.read(report.resolve(OpenLoopReport.JSON), ClosedReport.class);
        assertThat(measured.curves()).singleElement().satisfies(curve -> {
            assertThat(curve.runs()).extracting(ClosedRun::synchronous).containsExactly(true, false);
            assertThat(curve.runs()).allSatisfy(closed -> {
                assertThat(closed.tokens()).isGreaterThanOrEqualTo(300);
                assertThat(closed.speedUp()).isPositive();
                assertThat(closed.idle()).containsOnlyKeys("generator", "learner", "scorer");
            });
            assertThat(curve.runs().get(0).staleness())
                    .as("a synchronous run is on policy")
                    .isZero();
            assertThat(curve.runs().get(0).essRatio()).isGreaterThan(0.999);
        });
        assertThat(run(0, "load-test", "--compare", report.toString(), report.toString()))
                .contains("within noise");
    }

    private static void requirePlausible(PointResult point) {
        assertThat(point.achieved()).isPositive();
        assertThat(point.drainSeconds())
                .as("the backlog was worked off, or -1: the machine was busy")
                .isNotZero();
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
}
