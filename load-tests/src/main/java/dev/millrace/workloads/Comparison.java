package dev.millrace.workloads;

import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.workloads.Curve.LoadReport;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Two reports of the same workload side by side.
 *
 * <p>Throughputs are compared as ratios to each report's own baseline, because the machine may have been busier at one time
 * than at the other. A difference below the noise bound is called noise: the bound is how closely the knee was found, which is how far
 * the lowest rate that was not followed lies above the highest that was, in the report where that is more, and at least 10 %.
 */
public final class Comparison {
    static final double LEAST_NOISE = 0.10;

    private Comparison() {}

    /**
     * One curve in both.
     *
     * @param knee of the new report over that of the old one
     * @param kneeOfBaseline the same, each divided by its baseline's copy
     * @param noise bound on a relative difference that says nothing
     */
    public record Row(
            String curve,
            double oldKnee,
            double newKnee,
            double knee,
            double kneeOfBaseline,
            double oldP99Ms,
            double newP99Ms,
            double noise) {

        /** What the difference means. */
        public String verdict() {
            return Comparison.verdict(kneeOfBaseline - 1, noise);
        }
    }

    /** What a relative change means. */
    static String verdict(double change, double noise) {
        return Math.abs(change) <= noise ? "within noise" : change > 0 ? "faster" : "SLOWER";
    }

    /** Of the curves that both have. */
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
                before.knee().rate(),
                after.knee().rate(),
                knee,
                knee / baseline,
                p99(before),
                p99(after),
                Math.max(LEAST_NOISE, Math.max(resolution(before), resolution(after))));
    }

    /** Of the point with the highest rate that was followed; 0 if there is none. */
    private static double p99(Curve curve) {
        return curve.points().stream()
                .filter(Comparison::followed)
                .max(Comparator.comparingDouble(PointResult::offered))
                .map(point -> point.endToEnd().p99())
                .orElse(0.0);
    }

    private static boolean followed(PointResult point) {
        return Knee.Point.of(point.offered(), point.achieved()).followed();
    }

    /** How far the lowest rate that was not followed lies above the highest that was; 0 if there are not both. */
    private static double resolution(Curve curve) {
        List<Knee.Point> points = curve.points().stream()
                .map(point -> Knee.Point.of(point.offered(), point.achieved()))
                .toList();
        double highest = Knee.highestFollowed(points);
        double above = Knee.lowestNotFollowed(points);
        return highest > 0 && above > 0 ? above / highest - 1 : 0;
    }

    private static final List<Column<Row>> COLUMNS = List.of(
            Column.text("curve", Row::curve),
            Column.number("knee old", 0, Row::oldKnee),
            Column.number("knee new", 0, Row::newKnee),
            Column.number("new/old", 2, Row::knee),
            Column.number("by baseline", 2, Row::kneeOfBaseline),
            Column.<Row>number("p99 old", 0, Row::oldP99Ms).in("ms"),
            Column.<Row>number("p99 new", 0, Row::newP99Ms).in("ms"),
            Column.percent("noise", 0, Row::noise),
            Column.text("verdict", Row::verdict));

    /** Both reports side by side. */
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

    /** Two reports: nothing is left out without a word. */
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
}
