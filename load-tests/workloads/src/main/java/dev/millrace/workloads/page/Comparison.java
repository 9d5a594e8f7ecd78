package dev.millrace.workloads.page;

import dev.millrace.workloads.knee.Knee;
import dev.millrace.workloads.point.PointResult;
import dev.millrace.workloads.sweep.Curve;
import dev.millrace.workloads.sweep.LoadReport;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * Two reports of the same workload side by side.
 *
 * <p>Throughputs are compared as ratios to each report's own baseline, because the machine may have been busier at one time
 * than at the other. A difference below the noise bound is called noise: the bound is how closely the knee was found, which is how far
 * the lowest rate that was not followed lies above the highest that was, in the report where that is more, and at least 10 %.
 */
public final class Comparison {
    private static final double LEAST_NOISE = 0.10;

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
            double change = kneeOfBaseline - 1;
            return Math.abs(change) <= noise ? "within noise" : change > 0 ? "faster" : "SLOWER";
        }
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

    /** Labels of the curves that one report has and the other has not. */
    private static List<String> missing(LoadReport in, LoadReport of) {
        return of.curves().stream()
                .filter(curve ->
                        in.curves().stream().noneMatch(other -> other.settings().equals(curve.settings())))
                .map(Curve::label)
                .toList();
    }

    /** Nothing is left out without a word. */
    static void alone(String report, List<String> curves, PrintWriter out) {
        if (!curves.isEmpty()) {
            out.println("not compared, because only the " + report + " report has them: " + String.join("; ", curves));
        }
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
                .max(java.util.Comparator.comparingDouble(PointResult::offered))
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

    /** A table for a terminal. */
    public static void print(LoadReport old, LoadReport now, PrintWriter out) {
        out.printf(
                Locale.ROOT,
                "old: %s, commit %s; new: %s, commit %s%n%n",
                old.origin().startedAt(),
                old.origin().commit(),
                now.origin().startedAt(),
                now.origin().commit());
        out.println("| curve | knee old | knee new | new/old | by baseline | p99 old, new ms | noise | |");
        out.println("| --- | --- | --- | --- | --- | --- | --- | --- |");
        for (Row row : of(old, now)) {
            out.printf(
                    Locale.ROOT,
                    "| %s | %.0f | %.0f | %.2f | %.2f | %.0f, %.0f | %.0f %% | %s |%n",
                    row.curve(),
                    row.oldKnee(),
                    row.newKnee(),
                    row.knee(),
                    row.kneeOfBaseline(),
                    row.oldP99Ms(),
                    row.newP99Ms(),
                    100 * row.noise(),
                    row.verdict());
        }
        alone("old", missing(now, old), out);
        alone("new", missing(old, now), out);
        out.flush();
    }
}
