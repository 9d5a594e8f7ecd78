package dev.millrace.workloads;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.ReportText;
import dev.millrace.workloads.Curve.LoadReport;
import dev.millrace.workloads.PointResult.LagSample;
import dev.millrace.workloads.PointResult.Latency;
import dev.millrace.workloads.PointResult.Limit;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReportsTest {
    @TempDir
    Path directory;

    private final List<String> said = new ArrayList<>();

    private static PointResult point(double offered, double achieved) {
        return point(offered, achieved, -1, -1);
    }

    private static PointResult point(double offered, double achieved, double recoverySeconds, double gapSeconds) {
        Latency latency = new Latency(10, 1, 2, 3, 4, 5);
        return new PointResult(
                Map.of("load.rollouts_per_second", Double.toString(offered)),
                new PointResult.Rates(offered, achieved, achieved * 512, achieved / 100, 0.4),
                new PointResult.Latencies(latency, latency, latency, latency),
                new PointResult.Batches(0.9, 0.8, 1.5, 0),
                new PointResult.Use(0.25, 0.5, 2.5, Limit.LOAD),
                new PointResult.Recovery(-1, 0, recoverySeconds, gapSeconds),
                List.of(new LagSample(0.5, Map.of("t-0", 7L), Map.of("t-0", 0.25), 1, 0.5, 2, achieved)));
    }

    private static LoadReport report(double knee, double copyMegabytes, String workload) {
        return report(
                knee, copyMegabytes, workload, List.of(point(0.97 * knee, 0.97 * knee), point(1.09 * knee, knee)));
    }

    private static LoadReport report(double knee, double copyMegabytes, String workload, List<PointResult> points) {
        return report(knee, copyMegabytes, workload, points, 1);
    }

    private static LoadReport report(
            double knee, double copyMegabytes, String workload, List<PointResult> points, double loadAverage) {
        Curve curve = new Curve(
                Map.of("instances", "1"),
                new Baseline(1, 1000, 10, 0.3, 2, copyMegabytes),
                points,
                new Knee(knee, true));
        return new LoadReport(
                LoadReport.FORMAT,
                "test",
                new ReportOrigin("c", "abc", "m", 2, new ReportOrigin.Software("j", "4"), "now", loadAverage),
                workload,
                List.of(curve));
    }

    @Test
    void shouldReadWhatItWrote() throws IOException {
        LoadReport report = report(300, 50, "seconds: 10");
        OpenLoopReport.write(report, directory, said::add);
        assertThat(JsonFile.read(directory.resolve(OpenLoopReport.JSON), LoadReport.class))
                .isEqualTo(report);
        assertThat(Files.readAllLines(directory.resolve("points.csv"))).hasSize(3);
        assertThat(Files.readAllLines(directory.resolve("lags.csv")))
                .hasSize(3)
                .anyMatch(line -> line.contains("t-0,7,0.25"));
    }

    @Test
    void shouldMakeAPageAndAPictureOfTheSameNumbers() throws IOException {
        OpenLoopReport.write(report(300, 50, "seconds: 10"), directory, said::add);
        assertThat(said).isEmpty();
        assertThat(directory.resolve("report.png")).isNotEmptyFile();
        assertThat(Files.readString(directory.resolve("report.html")))
                .contains("instances 1: knee 300 rollouts/s.")
                .contains("seconds: 10");
    }

    @Test
    void shouldAnswerFirstWhatAKillCost() {
        assertThat(OpenLoopReport.of(report(300, 50, "", List.of(point(100, 100, 2.6, 0.55))))
                        .conclusion())
                .satisfies(found -> {
                    assertThat(found.asked()).isEqualTo("What does a kill under load cost?");
                    assertThat(found.answer())
                            .isEqualTo("0.6 s without a batch, and back to the lag before after 2.6 s");
                    assertThat(found.health()).isEqualTo(Health.OK);
                });
        assertThat(OpenLoopReport.of(report(300, 50, "", List.of(point(100, 100, -1, 3))))
                        .conclusion())
                .satisfies(found -> {
                    assertThat(found.answer())
                            .isEqualTo("3.0 s without a batch; what had piled up was still there when the load ended");
                    assertThat(found.health()).isEqualTo(Health.LOOK);
                });
        assertThat(OpenLoopReport.of(report(300, 50, "")).conclusion().answer()).isEqualTo("300 rollouts/s");
    }

    @Test
    void shouldStateTheSpreadOfEveryRateThatWasMeasuredMoreThanOnce() throws IOException {
        LoadReport repeated = report(
                615, 50, "seconds: 10", List.of(point(617, 480), point(617, 343), point(617, 615), point(400, 400)));
        OpenLoopReport.write(repeated, directory, said::add);

        assertThat(Files.readAllLines(directory.resolve("points.csv")))
                .as("every repetition is a row")
                .hasSize(1 + 4);
        assertThat(ReportText.markdown(OpenLoopReport.of(repeated)))
                .contains("At 617 rollouts/s, measured 3 times, it achieved 480 (343 to 615) (median and range).")
                .doesNotContain("At 400");
        assertThat(OpenLoopReport.of(repeated).conclusion().sure())
                .startsWith("4 measurements of 2 rates on the machine below, some rates more than once;")
                .doesNotContain("measured once");
        assertThat(OpenLoopReport.of(report(300, 50, "")).conclusion().sure())
                .startsWith("2 measurements of 2 rates on the machine below, each measured once");
    }

    @Test
    void shouldNotCallItAMeasurementWhereTheMachineWasBusy() {
        LoadReport busy = report(716, 50, "", List.of(point(800, 716)), 45.7);

        assertThat(OpenLoopReport.of(busy).verdict().get(0))
                .isEqualTo(
                        "Machine busy, not a measurement: load average 45.7 on 2 processors when it began, expected at"
                                + " most 4.0; repeat it on a quiet machine.");
        assertThat(OpenLoopReport.of(busy).conclusion()).satisfies(found -> {
            assertThat(found.answer()).isEqualTo("machine busy, not a measurement: 716 rollouts/s");
            assertThat(found.health()).isEqualTo(Health.LOOK);
        });
        assertThat(Comparison.report(report(300, 50, ""), busy).verdict().get(0))
                .startsWith("New report: Machine busy, not a measurement");
        assertThat(OpenLoopReport.of(report(300, 50, "", List.of(point(300, 300)), 4.0))
                        .verdict())
                .containsExactly("instances 1: knee 300 rollouts/s.");
    }

    @Test
    void shouldCallADistributionByItsKindAndValue() {
        assertThat(SettingsLabel.of(Map.of(
                        "rollouts.response_tokens",
                        "{\"kind\":\"log_normal\",\"value\":1024,\"spread\":1.0,\"least\":16}")))
                .isEqualTo("response_tokens log-normal 1024 spread 1.0");
    }

    @Test
    void shouldCompareByTheBaseline() {
        LoadReport old = report(300, 50, "");
        assertThat(Comparison.of(old, report(150, 25, "")))
                .singleElement()
                .satisfies(row -> assertThat(row.knee()).isEqualTo(0.5))
                .satisfies(row -> assertThat(row.verdict())
                        .as("half as fast on a machine that was half as fast")
                        .isEqualTo("within noise"));
        assertThat(Comparison.of(old, report(150, 50, "")))
                .singleElement()
                .satisfies(row -> assertThat(row.verdict()).isEqualTo("SLOWER"));
        assertThat(Comparison.of(old, report(400, 50, "")))
                .singleElement()
                .satisfies(row -> assertThat(row.verdict()).isEqualTo("faster"));
    }

    @Test
    void shouldSayWhichCurvesOnlyOneReportHas() {
        LoadReport one = report(300, 50, "");
        LoadReport none = new LoadReport(one.format(), one.name(), one.origin(), one.workload(), List.of());
        String text = ReportText.markdown(Comparison.report(one, none));

        assertThat(text).contains("only the old report has them: instances 1").doesNotContain("only the new");
    }
}
