package dev.millrace.workloads.closed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.infra.broker.Durability;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.ReportText;
import dev.millrace.workloads.ClosedLoopReport;
import dev.millrace.workloads.Comparison.ClosedComparison;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.OpenLoopReport;
import dev.millrace.workloads.closed.ClosedReport.ClosedCurve;
import dev.millrace.workloads.closed.ClosedRun.ClosedStep;
import dev.millrace.workloads.topology.Distribution;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ClosedLoopTest {
    @TempDir
    Path directory;

    private record Setting(Map<String, String> settings, int eta, boolean isShort)
            implements ClosedLoop.Point<Setting> {
        static Setting of(int eta, String batch) {
            Map<String, String> settings = new LinkedHashMap<>();
            settings.put(ClosedLoop.ETA, Integer.toString(eta));
            settings.put("closed.batch_sequences", batch);
            return new Setting(settings, eta, false);
        }

        @Override
        public Setting synchronous() {
            return of(0, settings.get("closed.batch_sequences"));
        }

        @Override
        public Setting shortened() {
            return new Setting(settings, eta, true);
        }
    }

    private static ClosedPlan plan(double reward, int overSteps) {
        return new ClosedPlan(Distribution.fixed(0), Distribution.fixed(0), 0, 30, 0, reward, overSteps, 300, 512, 1);
    }

    /** Ten steps of a hundred tokens, one every {@code secondsPerStep}, rewarded 0.1 more each time. */
    private static ClosedRun run(Map<String, String> settings, int eta, double secondsPerStep) {
        List<ClosedStep> steps = new ArrayList<>();
        for (int i = 1; i <= 10; i++) {
            steps.add(new ClosedStep(i * secondsPerStep, i, 0.1 * i, eta, 1, 100));
        }
        return ClosedRun.of(
                settings,
                eta == 0,
                plan(0.5, 3),
                steps,
                new ClosedRun.Use(Map.of("generator", 0.5, "scorer", 0.9, "learner", 0.1), 0.7));
    }

    private final List<Setting> ran = new ArrayList<>();

    private List<ClosedCurve> loop(List<Setting> points) throws Exception {
        return new ClosedLoop<>(
                        new ClosedLoop.Execution<Setting>() {
                            @Override
                            public Optional<ClosedRun> plainLoop(Setting point) {
                                return Optional.of(ClosedLoopTest.run(point.settings(), 0, 0.5));
                            }

                            @Override
                            public ClosedRun run(Setting point, int number) {
                                assertThat(number).isEqualTo(ran.size());
                                ran.add(point);
                                return ClosedLoopTest.run(point.settings(), point.eta(), point.eta() == 0 ? 2 : 1);
                            }
                        },
                        line -> {})
                .run(points);
    }

    @Test
    void shouldRunTheSynchronousOneFirstAndHoldTheOthersAgainstIt() throws Exception {
        List<ClosedCurve> curves = loop(List.of(Setting.of(2, "64"), Setting.of(0, "64"), Setting.of(2, "128")));
        assertThat(ran.get(0).isShort()).as("something to warm up with").isTrue();
        assertThat(ran.stream().skip(1).map(Setting::eta)).containsExactly(0, 2, 0, 2);
        assertThat(curves)
                .extracting(ClosedCurve::settings)
                .containsExactly(Map.of("closed.batch_sequences", "64"), Map.of("closed.batch_sequences", "128"));
        assertThat(curves).allSatisfy(curve -> {
            assertThat(curve.runs()).extracting(ClosedRun::synchronous).containsExactly(true, false);
            assertThat(curve.runs().get(1).speed().speedUp()).isCloseTo(2, within(1e-9));
            assertThat(curve.runs().get(1).speed().speedUpToReward()).isCloseTo(2, within(1e-9));
            assertThat(curve.plain().speed().speedUp()).isCloseTo(4, within(1e-9));
        });
    }

    @Test
    void shouldSayWhenTheMeanRewardWasReached() {
        ClosedRun run = run(Map.of(), 0, 2);
        assertThat(run.speed().secondsToReward())
                .as("0.4, 0.5, 0.6 at the sixth step")
                .isEqualTo(12);
        assertThat(run.firstReward()).isCloseTo(0.2, within(1e-9));
        assertThat(run.lastReward()).isCloseTo(0.9, within(1e-9));
        assertThat(run.tokensPerSecond()).isEqualTo(50);
        assertThat(run.millisPerStep()).isCloseTo(2000, within(1e-9));
        assertThat(ClosedRun.of(
                                Map.of(),
                                true,
                                plan(0.95, 3),
                                run.steps(),
                                new ClosedRun.Use(run.use().idle(), 0))
                        .speed()
                        .secondsToReward())
                .isEqualTo(-1);
    }

    @Test
    void shouldWriteAReportThatCanBeReadAndCompared() throws Exception {
        ClosedReport report = new ClosedReport(
                ClosedReport.FORMAT,
                ClosedReport.KIND,
                "eta",
                new ReportOrigin("c", "abc", "m", 2, new ReportOrigin.Software("j", "4"), "now", 1),
                "# </script>",
                Durability.VERSIONS,
                loop(List.of(Setting.of(0, "64"), Setting.of(2, "64"))));
        ClosedLoopReport.write(report, directory, line -> {});
        assertThat(JsonFile.read(directory.resolve(OpenLoopReport.JSON), ClosedReport.class))
                .isEqualTo(report);
        assertThat(Files.readString(directory.resolve("report.html")))
                .doesNotContain("# </script>")
                .contains("2.00 times the tokens per second of the synchronous run");
        assertThat(Files.readAllLines(directory.resolve("runs.csv"))).hasSize(4);
        assertThat(Files.readAllLines(directory.resolve("steps.csv"))).hasSize(31);

        String said = ReportText.markdown(ClosedComparison.report(report, report))
                + ReportText.markdown(ClosedLoopReport.of(report));
        assertThat(said)
                .contains("within noise", "(synchronous)", "a step takes 2.00 of the plain loop's", "| plain loop ");
    }

    @Test
    void shouldRefuseAPlanThatNeverEndsInASentence() {
        assertThatThrownBy(() ->
                        new ClosedPlan(Distribution.fixed(0), Distribution.fixed(0), 0, 0, 0, 0.9, 10, 300, 512, 1))
                .hasMessageContaining("seconds and tokens must be at least 0 and one of them more");
        assertThatThrownBy(() -> new ClosedPlan(
                        Distribution.fixed(700_000), Distribution.fixed(0), 0, 30, 0, 0.9, 10, 300, 512, 1))
                .hasMessageContaining("environment_ms.most must be at most 600000 ms");
        assertThatThrownBy(() ->
                        new ClosedPlan(Distribution.fixed(0), Distribution.fixed(0), 0, 30, 0, 0.9, 10, 20, 512, 1))
                .hasMessageContaining("limit_seconds must be at least");
    }
}
