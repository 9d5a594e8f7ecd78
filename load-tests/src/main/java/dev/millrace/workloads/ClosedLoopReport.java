package dev.millrace.workloads;

import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportPage;
import dev.millrace.report.Section;
import dev.millrace.report.Series;
import dev.millrace.report.Table;
import dev.millrace.workloads.closed.ClosedReport;
import dev.millrace.workloads.closed.ClosedReport.ClosedCurve;
import dev.millrace.workloads.closed.ClosedRun;
import dev.millrace.workloads.closed.ClosedRun.ClosedStep;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Gain over sampling and training in turns, and its cost in staleness. */
public final class ClosedLoopReport {
    private static final List<String> FILES =
            List.of("report.html", OpenLoopReport.JSON, "runs.csv", "steps.csv", "report.png");

    private static final String PLAIN = "plain loop";

    record Row(int curve, ClosedCurve of, ClosedRun run) {
        String label() {
            return isPlain()
                    ? PLAIN
                    : SettingsLabel.of(run.settings(), of.settings()) + (run.synchronous() ? " (synchronous)" : "");
        }

        String name() {
            return isPlain() ? PLAIN + ", " + SettingsLabel.of(of.settings()) : run.label();
        }

        boolean isPlain() {
            return run.equals(of.plain());
        }

        double ofPlain(ToDoubleFunction<ClosedRun> value) {
            ClosedRun plain = of.plain();
            double own = value.applyAsDouble(run);
            return plain == null || own < 0 || value.applyAsDouble(plain) < 0
                    ? Double.NaN
                    : own / value.applyAsDouble(plain);
        }
    }

    private record StepAt(Row row, ClosedStep step) {}

    private static final List<Column<Row>> RUNS = List.of(
            Column.count("curve", Row::curve),
            Column.text("run", Row::name),
            Column.text("synchronous", row -> row.run().synchronous()),
            Column.count("steps", row -> row.run().steps().size()),
            Column.count("tokens", row -> row.run().tokens()),
            number("seconds", 1, ClosedRun::seconds),
            number("ms per step", 0, ClosedRun::millisPerStep),
            Column.number("of the plain loop", 2, row -> row.ofPlain(ClosedRun::millisPerStep)),
            number("tokens per second", 0, ClosedRun::tokensPerSecond),
            number("speed up", 2, run -> run.speed().speedUp()),
            number("seconds to reward", 1, run -> measured(run.speed().secondsToReward())),
            number("speed up to reward", 2, run -> measured(run.speed().speedUpToReward())),
            Column.number(
                    "to reward, of the plain loop",
                    2,
                    row -> row.ofPlain(run -> run.speed().secondsToReward())),
            number("first reward", 3, ClosedRun::firstReward),
            number("last reward", 3, ClosedRun::lastReward),
            number("staleness", 2, ClosedRun::staleness),
            number("ESS ratio", 3, ClosedRun::essRatio),
            idle("generator"),
            idle("scorer"),
            idle("learner"),
            Column.percent("processor load", 0, row -> row.run().use().processorLoad()));

    private static final List<Column<Row>> SHOWN = shown();

    private static final List<Column<StepAt>> STEPS = List.of(
            Column.count("curve", at -> at.row().curve()),
            Column.text("run", at -> at.row().name()),
            Column.number("at seconds", 3, at -> at.step().atSeconds()),
            Column.count("version", at -> at.step().version()),
            Column.number("reward", 5, at -> at.step().reward()),
            Column.number("staleness", 4, at -> at.step().staleness()),
            Column.number("ess ratio", 5, at -> at.step().essRatio()),
            Column.count("tokens", at -> at.step().tokens()));

    private ClosedLoopReport() {}

    private static Column<Row> number(String name, int decimals, ToDoubleFunction<ClosedRun> value) {
        return Column.number(name, decimals, row -> value.applyAsDouble(row.run()));
    }

    private static Column<Row> idle(String role) {
        return Column.percent(role + " idle", 0, row -> row.run().use().idle().getOrDefault(role, Double.NaN));
    }

    private static List<Column<Row>> shown() {
        List<Column<Row>> shown = new ArrayList<>(RUNS.subList(3, RUNS.size()));
        shown.remove(1); // tokens: their rate says it
        shown.add(0, Column.text("run", Row::label));
        return shown;
    }

    /** -1 in the record means not reached. */
    private static double measured(double value) {
        return value < 0 ? Double.NaN : value;
    }

    static List<Row> rows(ClosedReport report) {
        return IntStream.range(0, report.curves().size())
                .boxed()
                .flatMap(c -> {
                    ClosedCurve curve = report.curves().get(c);
                    return Stream.concat(Stream.ofNullable(curve.plain()), curve.runs().stream())
                            .map(run -> new Row(c + 1, curve, run));
                })
                .toList();
    }

    /**
     * Writes {@value OpenLoopReport#JSON}, page, CSV tables and picture.
     *
     * @param said receives a line if there can be no picture
     */
    public static void write(ClosedReport of, Path directory, Consumer<String> said) throws IOException {
        Report report = of(of);
        try (ReportFolder files = ReportFolder.begin(directory, FILES)) {
            files.write(OpenLoopReport.JSON, JsonFile.text(of) + "\n");
            files.write("report.html", ReportPage.of(report));
            files.write("runs.csv", RUNS, rows(of));
            files.write(
                    "steps.csv",
                    STEPS,
                    rows(of).stream()
                            .flatMap(row -> row.run().steps().stream().map(step -> new StepAt(row, step)))
                            .toList());
            files.draw("report.png", report, charts(rows(of), Row::name).subList(0, 2), 1, said);
            files.finish();
        }
    }

    public static Report of(ClosedReport of) {
        Report report = Report.of("Closed loop " + of.name(), verdict(of))
                .concluding(conclusion(of))
                .madeBy(of.origin());
        List<Row> rows = rows(of);
        for (int c = 0; c < of.curves().size(); c++) {
            int curve = c + 1;
            List<Row> runs = rows.stream().filter(row -> row.curve() == curve).toList();
            report = report.with(Section.of(SettingsLabel.of(of.curves().get(c).settings()))
                    .with(Table.of("", SHOWN, runs))
                    .with(charts(runs, Row::label)));
        }
        return report.with(Section.of("Workload").listing(of.workload()).forDetails());
    }

    private static Conclusion conclusion(ClosedReport of) {
        String asked = "What is gained over sampling and training in turns?";
        DoubleSummaryStatistics gain = rows(of).stream()
                .filter(row -> !row.run().synchronous())
                .mapToDouble(row -> row.run().speed().speedUp())
                .summaryStatistics();
        if (gain.getCount() == 0) {
            return Conclusion.of(asked, "not known: no run but the synchronous ones was measured", Health.NONE);
        }
        String range = gain.getCount() == 1
                ? String.format(Locale.ROOT, "%.2f", gain.getMin())
                : String.format(Locale.ROOT, "%.2f to %.2f", gain.getMin(), gain.getMax());
        return Conclusion.of(asked, range + " times the tokens per second", gain.getMin() > 1 ? Health.OK : Health.LOOK)
                .resting("speed-up over the synchronous run of the same curve", range)
                .sure("one run of each setting, so that there is no interval");
    }

    private static List<String> verdict(ClosedReport of) {
        return Stream.concat(
                        of.origin().busy().stream(),
                        rows(of).stream()
                                .filter(row -> !row.run().synchronous())
                                .map(row -> String.format(
                                        Locale.ROOT,
                                        "%s: %.2f times the tokens per second of the synchronous run, %.1f versions behind%s.",
                                        row.run().label(),
                                        row.run().speed().speedUp(),
                                        row.run().staleness(),
                                        row.of().plain() == null
                                                ? ""
                                                : String.format(
                                                        Locale.ROOT,
                                                        "; a step takes %.2f of the plain loop's",
                                                        row.ofPlain(ClosedRun::millisPerStep)))))
                .toList();
    }

    private static List<Chart> charts(List<Row> runs, Function<Row, String> name) {
        Axis time = Axis.of("time").in("s");
        return List.of(
                Chart.of("reward, running mean", time, Axis.of("reward"), means(runs, name, ClosedStep::reward)),
                Chart.of("tokens trained on", time, Axis.of("tokens"), series(runs, name, run -> sums(run.steps()))),
                Chart.of(
                        "versions behind, running mean",
                        time,
                        Axis.of("versions"),
                        means(runs, name, ClosedStep::staleness)),
                Chart.of(
                        "ESS ratio, running mean",
                        time,
                        Axis.share("ESS ratio"),
                        means(runs, name, ClosedStep::essRatio)));
    }

    private static List<Series> means(List<Row> runs, Function<Row, String> name, ToDoubleFunction<ClosedStep> value) {
        return series(
                runs,
                name,
                run -> IntStream.range(0, run.steps().size())
                        .mapToDouble(i -> run.steps().subList(Math.max(0, i + 1 - run.overSteps()), i + 1).stream()
                                .mapToDouble(value)
                                .average()
                                .orElseThrow())
                        .toArray());
    }

    private static List<Series> series(
            List<Row> runs, Function<Row, String> name, Function<ClosedRun, double[]> values) {
        return runs.stream()
                .map(row -> Series.line(
                        name.apply(row),
                        row.run().steps().stream()
                                .mapToDouble(ClosedStep::atSeconds)
                                .toArray(),
                        values.apply(row.run())))
                .toList();
    }

    private static double[] sums(List<ClosedStep> steps) {
        double[] sums = new double[steps.size()];
        double sum = 0;
        for (int i = 0; i < sums.length; i++) {
            sum += steps.get(i).tokens();
            sums[i] = sum;
        }
        return sums;
    }
}
