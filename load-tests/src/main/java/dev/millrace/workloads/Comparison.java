package dev.millrace.workloads;

import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.workloads.Curve.LoadReport;
import dev.millrace.workloads.closed.ClosedReport;
import dev.millrace.workloads.closed.ClosedRun;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Compares two reports of a workload by throughput over each report's own baseline. Noise is the interval in which the
 * knee was found, at least 10 %.
 */
public final class Comparison {
    static final double LEAST_NOISE = 0.10;

    private Comparison() {}

    /** A figure before and after. */
    public record Pair(double old, double now) {}

    /**
     * @param knee new over old
     * @param kneeOfBaseline the same, each divided by its baseline's copy
     * @param noise bound on a relative difference
     */
    public record Row(String curve, Pair knees, double knee, double kneeOfBaseline, Pair p99Ms, double noise) {

        public String verdict() {
            return Comparison.verdict(kneeOfBaseline - 1, noise);
        }
    }

    static String verdict(double change, double noise) {
        return Math.abs(change) <= noise ? "within noise" : change > 0 ? "faster" : "SLOWER";
    }

    public static List<Row> of(LoadReport old, LoadReport now) {
        List<Row> rows = new ArrayList<>();
        for (Curve after : now.curves()) {
            Optional<Curve> before = old.curves().stream()
                    .filter(curve -> curve.settings().equals(after.settings()))
                    .findFirst();
            before.ifPresent(curve -> rows.add(row(curve, after)));
        }
        return rows;
    }

    private static Row row(Curve before, Curve after) {
        double knee = after.knee().rate() / before.knee().rate();
        double baseline =
                after.baseline().copyMegabytesPerSecond() / before.baseline().copyMegabytesPerSecond();
        return new Row(
                after.label(),
                new Pair(before.knee().rate(), after.knee().rate()),
                knee,
                knee / baseline,
                new Pair(p99(before), p99(after)),
                Math.max(LEAST_NOISE, Math.max(resolution(before), resolution(after))));
    }

    /** Of the highest rate that was followed; 0 if none was. */
    private static double p99(Curve curve) {
        return curve.points().stream()
                .filter(Comparison::followed)
                .max(Comparator.comparingDouble(p -> p.rates().offered()))
                .map(point -> point.latencies().endToEnd().p99())
                .orElse(0.0);
    }

    private static boolean followed(PointResult point) {
        return Knee.Point.of(point.rates().offered(), point.rates().achieved()).followed();
    }

    /** Relative gap between the highest rate followed and the lowest not followed; 0 without both. */
    private static double resolution(Curve curve) {
        List<Knee.Point> points = curve.points().stream()
                .map(point ->
                        Knee.Point.of(point.rates().offered(), point.rates().achieved()))
                .toList();
        double highest = Knee.highestFollowed(points);
        double above = Knee.lowestNotFollowed(points);
        return highest > 0 && above > 0 ? above / highest - 1 : 0;
    }

    private static final List<Column<Row>> COLUMNS = List.of(
            Column.text("curve", Row::curve),
            Column.number("knee old", 0, row -> row.knees().old()),
            Column.number("knee new", 0, row -> row.knees().now()),
            Column.number("new/old", 2, Row::knee),
            Column.number("by baseline", 2, Row::kneeOfBaseline),
            Column.<Row>number("p99 old", 0, row -> row.p99Ms().old()).in("ms"),
            Column.<Row>number("p99 new", 0, row -> row.p99Ms().now()).in("ms"),
            Column.percent("noise", 0, Row::noise),
            Column.text("verdict", Row::verdict));

    public static Report report(LoadReport old, LoadReport now) {
        return report(
                old.origin(),
                now.origin(),
                Table.of("", COLUMNS, of(old, now)),
                missing(old.curves(), now.curves()),
                missing(now.curves(), old.curves()));
    }

    private static List<String> missing(List<Curve> of, List<Curve> in) {
        return of.stream()
                .filter(curve -> in.stream().noneMatch(other -> other.settings().equals(curve.settings())))
                .map(Curve::label)
                .toList();
    }

    static Report report(ReportOrigin old, ReportOrigin now, Table table, List<String> onlyOld, List<String> onlyNew) {
        List<String> alone = new ArrayList<>();
        Map.of("old", onlyOld, "new", onlyNew).forEach((report, labels) -> {
            if (!labels.isEmpty()) {
                alone.add(
                        "not compared, because only the " + report + " report has them: " + String.join("; ", labels));
            }
        });
        List<String> verdict = new ArrayList<>();
        old.busy().ifPresent(busy -> verdict.add("Old report: " + busy));
        now.busy().ifPresent(busy -> verdict.add("New report: " + busy));
        verdict.add("old: " + old.startedAt() + ", commit " + old.commit() + "; new: " + now.startedAt() + ", commit "
                + now.commit());
        return Report.of("Comparison", verdict).with(Section.of("").with(table).noting(alone));
    }

    /**
     * Compares two closed loops by their gain over their own synchronous runs. A difference below the spread of the
     * synchronous runs, at least a tenth, is noise.
     */
    public static final class ClosedComparison {
        private record ClosedRow(ClosedRun old, ClosedRun now, double noise) {
            String verdict() {
                return Comparison.verdict(
                        now.synchronous()
                                ? 0
                                : now.speed().speedUp() / old.speed().speedUp() - 1,
                        noise);
            }
        }

        private static final List<Column<ClosedRow>> COLUMNS = List.of(
                Column.text("run", row -> row.now().label()),
                Column.number("tokens/s old", 0, row -> row.old().tokensPerSecond()),
                Column.number("tokens/s new", 0, row -> row.now().tokensPerSecond()),
                Column.number("of synchronous old", 2, row -> row.old().speed().speedUp()),
                Column.number("of synchronous new", 2, row -> row.now().speed().speedUp()),
                Column.number("last reward old", 3, row -> row.old().lastReward()),
                Column.number("last reward new", 3, row -> row.now().lastReward()),
                Column.percent("noise", 0, ClosedRow::noise),
                Column.text("verdict", ClosedRow::verdict));

        private ClosedComparison() {}

        public static Report report(ClosedReport old, ClosedReport now) {
            double noise = runs(now).stream()
                    .filter(ClosedRun::synchronous)
                    .flatMap(run -> find(old, run).stream()
                            .map(before -> Math.abs(Math.log(run.tokensPerSecond() / before.tokensPerSecond()))))
                    .reduce(Comparison.LEAST_NOISE, Math::max);
            List<ClosedRow> rows = runs(now).stream()
                    .flatMap(run -> find(old, run).map(before -> new ClosedRow(before, run, noise)).stream())
                    .toList();
            return Comparison.report(
                    old.origin(), now.origin(), Table.of("", COLUMNS, rows), missing(old, now), missing(now, old));
        }

        private static List<ClosedRun> runs(ClosedReport report) {
            return report.curves().stream()
                    .flatMap(curve -> curve.runs().stream())
                    .toList();
        }

        private static List<String> missing(ClosedReport of, ClosedReport in) {
            return runs(of).stream()
                    .filter(run -> find(in, run).isEmpty())
                    .map(ClosedRun::label)
                    .toList();
        }

        private static Optional<ClosedRun> find(ClosedReport report, ClosedRun like) {
            return runs(report).stream()
                    .filter(run -> run.settings().equals(like.settings()) && run.synchronous() == like.synchronous())
                    .findFirst();
        }
    }
}
