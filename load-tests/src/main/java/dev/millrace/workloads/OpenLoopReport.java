package dev.millrace.workloads;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportPage;
import dev.millrace.report.Sample;
import dev.millrace.report.Section;
import dev.millrace.report.Series;
import dev.millrace.report.Table;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.workloads.Curve.LoadReport;
import dev.millrace.workloads.PointResult.LagSample;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Throughput, latency and the three lags against the offered rate and over time. */
public final class OpenLoopReport {
    public static final String JSON = "report.json";

    private static final List<String> FILES = List.of("report.html", JSON, "points.csv", "lags.csv", "report.png");

    private record Row(Curve curve, PointResult point) {}

    private record LagRow(Curve curve, PointResult point, LagSample lag, String partition) {}

    private static final Column<Row> POINT = Column.text(
            "point", row -> SettingsLabel.of(row.point().settings(), row.curve().settings()));
    private static final Column<Row> OFFERED = rate("offered", p -> p.rates().offered());
    private static final Column<Row> ACHIEVED = rate("achieved", p -> p.rates().achieved());
    private static final Column<Row> MEGABYTES =
            number("megabytes per second", 1, p -> p.rates().megabytesPerSecond());
    private static final Column<Row> OF_BASELINE =
            number("of baseline", 2, p -> p.rates().ofBaseline());
    private static final Column<Row> P50 =
            number("end to end p50 ms", 0, p -> p.latencies().endToEnd().p50());
    private static final Column<Row> P99 =
            number("end to end p99 ms", 0, p -> p.latencies().endToEnd().p99());
    private static final Column<Row> ADDED =
            number("added p99 ms", 0, p -> p.latencies().added().p99());
    private static final Column<Row> STALENESS =
            number("staleness mean", 2, p -> p.batches().stalenessMean());
    private static final Column<Row> ESS = number("ESS", 3, p -> p.batches().ess());

    private static final List<Column<Row>> SHORT = List.of(
            POINT,
            OFFERED,
            ACHIEVED,
            MEGABYTES,
            OF_BASELINE,
            P50,
            P99,
            ADDED,
            STALENESS,
            ESS,
            Column.text("limited by", row -> row.point().use().limit().words() + events(row.point())));

    private static final List<Column<Row>> ALL = List.of(
            Column.text("curve", row -> row.curve().label()),
            POINT,
            OFFERED,
            ACHIEVED,
            number("tokens per second", 0, p -> p.rates().tokensPerSecond()),
            MEGABYTES,
            OF_BASELINE,
            number("publish delay p99 ms", 1, p -> p.latencies().publishDelay().p99()),
            number(
                    "publish latency p99 ms",
                    1,
                    p -> p.latencies().publishLatency().p99()),
            P50,
            P99,
            number("added p50 ms", 1, p -> p.latencies().added().p50()),
            ADDED,
            ESS,
            number("trained share", 3, p -> p.batches().trainedShare()),
            STALENESS,
            number("stale share", 3, p -> p.batches().staleShare()),
            number("learner busy", 2, p -> p.use().learnerBusy()),
            number("processor load", 2, p -> p.use().processorLoad()),
            number("own micros", 1, p -> p.use().ownMicros()),
            number("drain seconds", 1, p -> measured(p.recovery().drainSeconds())),
            number("recovery seconds", 1, p -> measured(p.recovery().recoverySeconds())),
            number("gap seconds", 1, p -> measured(p.recovery().gapSeconds())),
            Column.text("limit", row -> row.point().use().limit().name().toLowerCase(Locale.ROOT)));

    private static final List<Column<LagRow>> LAGS = List.of(
            Column.text("curve", row -> row.curve().label()),
            Column.text("point", row -> row.point().label()),
            Column.number("at seconds", 2, row -> row.lag().atSeconds()),
            Column.text("partition", LagRow::partition),
            Column.count("records", row -> row.lag().records().get(row.partition())),
            Column.number("seconds", 2, row -> row.lag().seconds().get(row.partition())),
            Column.number("versions in flight", 3, row -> row.lag().versionsInFlight()),
            Column.number("versions in queue", 3, row -> row.lag().versionsInQueue()),
            Column.count("batches ahead", row -> row.lag().batchesAhead()),
            Column.number("rollouts per second", 1, row -> row.lag().rolloutsPerSecond()));

    private final LoadReport of;
    private final List<Chart> byRate;
    private final List<Chart.Mark> marks;
    private final List<Chart> overTime;

    private OpenLoopReport(LoadReport of) {
        this.of = of;
        this.byRate = byRate();
        this.marks = marks(of.workload());
        this.overTime = overTime(of.curves());
    }

    private static Column<Row> number(String name, int decimals, ToDoubleFunction<PointResult> value) {
        return Column.number(name, decimals, row -> value.applyAsDouble(row.point()));
    }

    private static Column<Row> rate(String name, ToDoubleFunction<PointResult> value) {
        return number(name, 0, value).in("rollouts/s");
    }

    /** -1 in the record means not measured. */
    private static double measured(double seconds) {
        return seconds < 0 ? Double.NaN : seconds;
    }

    public static Report of(LoadReport of) {
        return new OpenLoopReport(of).report();
    }

    /**
     * Writes {@value #JSON}, page, CSV tables and picture.
     *
     * @param said receives a line if there can be no picture
     */
    public static void write(LoadReport of, Path directory, Consumer<String> said) throws IOException {
        OpenLoopReport made = new OpenLoopReport(of);
        Report report = made.report();
        try (ReportFolder files = ReportFolder.begin(directory, FILES)) {
            files.write(JSON, JsonFile.text(of) + "\n");
            files.write("report.html", ReportPage.of(report));
            files.write("points.csv", ALL, rows(of.curves()));
            files.write("lags.csv", LAGS, lags(of.curves()));
            files.draw(
                    "report.png",
                    report,
                    made.byRate.isEmpty() ? made.overTime.subList(0, 2) : made.byRate.subList(0, 4),
                    made.byRate.isEmpty() ? 1 : 2,
                    said);
            files.finish();
        }
    }

    private Report report() {
        Report report = Report.of(
                        "Load test " + of.name(),
                        Stream.concat(
                                        of.origin().busy().stream(),
                                        of.curves().stream().map(OpenLoopReport::verdict))
                                .toList())
                .concluding(measured(conclusion()))
                .madeBy(of.origin());
        if (!byRate.isEmpty()) {
            report = report.with(Section.of("Against the offered rate").with(byRate));
        } else {
            report = report.with(Section.of("Over time").with(overTime));
        }
        for (Curve curve : of.curves()) {
            report = report.with(Section.of(curve.label())
                    .noting(Stream.concat(Stream.of(baseline(curve.baseline())), repeated(curve))
                            .toList())
                    .with(Table.of("", SHORT, rows(List.of(curve)))));
        }
        if (!byRate.isEmpty()) {
            for (Curve curve : of.curves()) {
                report = report.with(Section.of("Over time: " + curve.label())
                        .with(overTime(List.of(curve)))
                        .forDetails());
            }
        }
        return report.with(Section.of("All numbers")
                        .with(Table.of("", ALL, rows(of.curves())))
                        .forDetails())
                .with(Section.of("Workload").listing(of.workload()).forDetails());
    }

    /** A busy machine gives no conclusion. */
    private Conclusion measured(Conclusion found) {
        return of.origin().busy().isEmpty()
                ? found
                : Conclusion.of(found.asked(), "machine busy, not a measurement: " + found.answer(), Health.LOOK)
                        .sure(of.origin().busy().get());
    }

    private Conclusion conclusion() {
        return of.curves().stream()
                .flatMap(curve -> curve.points().stream())
                .filter(point -> point.recovery().gapSeconds() >= 0)
                .max(Comparator.comparingDouble(p -> p.recovery().gapSeconds()))
                .map(OpenLoopReport::ofKill)
                .orElseGet(this::ofKnee);
    }

    private static Conclusion ofKill(PointResult killed) {
        return Conclusion.of(
                        "What does a kill under load cost?",
                        String.format(
                                        Locale.ROOT,
                                        "%.1f s without a batch",
                                        killed.recovery().gapSeconds())
                                + (killed.recovery().recoverySeconds() < 0
                                        ? "; what had piled up was still there when the load ended"
                                        : String.format(
                                                Locale.ROOT,
                                                ", and back to the lag before after %.1f s",
                                                killed.recovery().recoverySeconds())),
                        killed.recovery().recoverySeconds() < 0 ? Health.LOOK : Health.OK)
                .resting(
                        "end to end, p99",
                        String.format(
                                Locale.ROOT,
                                "%,.0f ms",
                                killed.latencies().endToEnd().p99()))
                .sure(String.format(
                        Locale.ROOT,
                        "killed once, at %,.0f rollouts/s, on the machine below; repeat it to know how far two runs are apart",
                        killed.rates().offered()));
    }

    private Conclusion ofKnee() {
        Curve least = of.curves().stream()
                .min(Comparator.comparingDouble(curve -> curve.knee().rate()))
                .orElseThrow();
        return Conclusion.of(
                        "How many rollouts per second does it carry before it falls behind?",
                        String.format(
                                Locale.ROOT,
                                "%s%,.0f rollouts/s%s",
                                least.knee().reached() ? "" : "more than ",
                                least.knee().rate(),
                                of.curves().size() == 1
                                        ? ""
                                        : ", the least of " + of.curves().size() + " curves: " + least.label()),
                        Health.NONE)
                .resting(
                        "against a raw publisher",
                        String.format(
                                Locale.ROOT,
                                "%,.0f rollouts/s",
                                least.baseline().publishRolloutsPerSecond()))
                .sure(measurements(least));
    }

    private static String measurements(Curve curve) {
        int points = curve.points().size();
        int rates = curve.achieved().size();
        return String.format(
                Locale.ROOT,
                "%d %s of %d %s on the machine below%s; repeat it to know how far two runs are apart",
                points,
                points == 1 ? "measurement" : "measurements",
                rates,
                rates == 1 ? "rate" : "rates",
                points == rates
                        ? ", each measured once"
                        : ", some rates more than once; the knee takes the best repetition, since other work only lowers one, and"
                                + " the curve draws medians");
    }

    private static Stream<String> repeated(Curve curve) {
        return curve.achieved().entrySet().stream()
                .filter(rate -> rate.getValue().count() > 1)
                .map(rate -> String.format(
                        Locale.ROOT,
                        "At %,.0f rollouts/s, measured %d times, it achieved %s (median and range).",
                        rate.getKey(),
                        rate.getValue().count(),
                        rate.getValue().range(0)));
    }

    private static String verdict(Curve curve) {
        return String.format(
                Locale.ROOT,
                "%s: knee %s%,.0f rollouts/s.",
                curve.label(),
                curve.knee().reached() ? "" : "above ",
                curve.knee().rate());
    }

    private static String baseline(Baseline baseline) {
        return String.format(
                Locale.ROOT,
                "In comparison, a raw transactional copy moves %.1f MB/s, and %s %,.0f rollouts/s (%.1f MB/s), %.0f %% of the time in"
                        + " making records, %.1f us each.",
                baseline.copyMegabytesPerSecond(),
                baseline.generators() == 1 ? "one generator publishes" : baseline.generators() + " generators publish",
                baseline.publishRolloutsPerSecond(),
                baseline.publishMegabytesPerSecond(),
                100 * baseline.generatorShare(),
                baseline.ownMicros());
    }

    private static String events(PointResult p) {
        List<String> events = new ArrayList<>();
        if (p.recovery().drainSeconds() >= 0) {
            events.add(String.format(
                    Locale.ROOT, "; backlog drained in %.1f s", p.recovery().drainSeconds()));
        }
        if (p.recovery().backlogLeft() > 0) {
            events.add(String.format(
                    Locale.ROOT,
                    "; %,d rollouts of the backlog were in no batch at the end",
                    p.recovery().backlogLeft()));
        }
        if (p.recovery().gapSeconds() >= 0) {
            events.add(String.format(
                    Locale.ROOT, "; gap after the kill %.1f s", p.recovery().gapSeconds()));
        }
        if (p.recovery().recoverySeconds() >= 0) {
            events.add(String.format(
                    Locale.ROOT, ", recovered in %.1f s", p.recovery().recoverySeconds()));
        }
        return String.join("", events);
    }

    private static List<Row> rows(List<Curve> curves) {
        return curves.stream()
                .flatMap(curve -> curve.points().stream().map(point -> new Row(curve, point)))
                .toList();
    }

    private static List<LagRow> lags(List<Curve> curves) {
        return rows(curves).stream()
                .flatMap(row -> row.point().lags().stream()
                        .flatMap(lag -> lag.records().keySet().stream()
                                .map(partition -> new LagRow(row.curve(), row.point(), lag, partition))))
                .toList();
    }

    /** The workload's fault, in seconds since the load began. */
    private static List<Chart.Mark> marks(String workload) {
        JsonNode tree = ConfigTree.parse(workload, "the workload");
        double after = tree.path("fault").path("kill_after_seconds").asDouble();
        return after > 0
                ? List.of(new Chart.Mark(
                        tree.path("warm_up_seconds").asDouble() + after, "one instance of the topology is killed"))
                : List.of();
    }

    /** Empty if no curve has two rates. */
    private List<Chart> byRate() {
        if (of.curves().stream().allMatch(curve -> curve.points().size() < 2)) {
            return List.of();
        }
        double highest = rows(of.curves()).stream()
                .mapToDouble(row -> row.point().rates().offered())
                .max()
                .orElseThrow();
        List<Series> achieved = new ArrayList<>(byRate(p -> p.rates().achieved()));
        achieved.add(Series.reference("all that is offered", new double[] {0, highest}, new double[] {0, highest}));
        Axis offered = Axis.of("offered").in("rollouts/s");
        return List.of(
                Chart.of("rollouts that reach a batch", offered, Axis.of("").in("rollouts/s"), achieved),
                Chart.of(
                        "end to end, p99",
                        offered,
                        Axis.of("").in("ms").logarithmic(),
                        byRate(p -> p.latencies().endToEnd().p99())),
                Chart.of(
                        "records behind at the end, all partitions",
                        offered,
                        Axis.of("records"),
                        byRate(p -> p.lags().isEmpty()
                                ? Double.NaN
                                : p.lags().get(p.lags().size() - 1).allRecords())),
                Chart.of(
                        "versions behind at the expected step, mean",
                        offered,
                        Axis.of("versions"),
                        byRate(p -> p.batches().stalenessMean())),
                Chart.of(
                        "ESS ratio, median",
                        offered,
                        Axis.share("ESS ratio"),
                        byRate(p -> p.batches().ess())),
                Chart.of(
                        "tokens that reach a gradient",
                        offered,
                        Axis.share("share"),
                        byRate(p -> p.batches().trainedShare())));
    }

    private List<Series> byRate(ToDoubleFunction<PointResult> value) {
        return of.curves().stream()
                .map(curve -> {
                    Map<Double, List<Double>> byRate = curve.points().stream()
                            .collect(Collectors.groupingBy(
                                    p -> p.rates().offered(),
                                    TreeMap::new,
                                    Collectors.mapping(value::applyAsDouble, Collectors.toList())));
                    return Series.line(
                            curve.label(),
                            byRate.keySet().stream()
                                    .mapToDouble(Double::doubleValue)
                                    .toArray(),
                            byRate.values().stream()
                                    .mapToDouble(times -> Sample.of(times).median())
                                    .toArray());
                })
                .toList();
    }

    private List<Chart> overTime(List<Curve> curves) {
        return List.of(
                overTime("rollouts into batches", Axis.of("").in("rollouts/s"), curves, LagSample::rolloutsPerSecond),
                overTime("records behind, all partitions", Axis.of("records"), curves, LagSample::allRecords),
                overTime("seconds behind, the furthest partition", Axis.of("seconds"), curves, LagSample::mostSeconds),
                overTime("versions behind in flight", Axis.of("versions"), curves, LagSample::versionsInFlight),
                overTime("versions behind in queue", Axis.of("versions"), curves, LagSample::versionsInQueue),
                overTime(
                        "batches that the learner has not taken", Axis.of("batches"), curves, LagSample::batchesAhead));
    }

    private Chart overTime(String title, Axis axis, List<Curve> curves, ToDoubleFunction<LagSample> value) {
        return Chart.of(
                        title,
                        Axis.of("time").in("s"),
                        axis,
                        rows(curves).stream()
                                .map(row -> Series.line(
                                        curves.size() == 1
                                                ? SettingsLabel.of(
                                                        row.point().settings(),
                                                        row.curve().settings())
                                                : row.point().label(),
                                        row.point().lags().stream()
                                                .mapToDouble(LagSample::atSeconds)
                                                .toArray(),
                                        row.point().lags().stream()
                                                .mapToDouble(value)
                                                .toArray()))
                                .toList())
                .marked(marks);
    }
}
