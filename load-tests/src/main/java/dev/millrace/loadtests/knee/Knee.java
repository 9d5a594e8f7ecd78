package dev.millrace.loadtests.knee;

import java.util.Comparator;
import java.util.List;

/**
 * The rate beyond which more load brings no more throughput: the c of {@code achieved = min(offered, c)} that fits a curve
 * best, by least squares of the logarithms.
 *
 * <p>Every point has a say, so that one that was disturbed does not decide.
 *
 * @param rate the knee; where it was not reached, the highest rate that was offered
 * @param reached false if the system followed every load: the knee is somewhere above
 */
public record Knee(double rate, boolean reached) {
    /** A system that achieves less than this of the highest offered rate has a knee below it. */
    private static final double FOLLOWS = 0.93;

    /**
     * One load and what came of it, in the same unit.
     *
     * @param offered greater than 0
     * @param achieved greater than 0
     */
    public record Point(double offered, double achieved) {
        public Point {
            if (!(offered > 0.0 && achieved > 0.0 && offered < Double.POSITIVE_INFINITY && achieved < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("rates must be finite and greater than 0: offered=" + offered + ", achieved=" + achieved);
            }
        }

        /** Whether the system followed this load. */
        public boolean followed() {
            return achieved >= FOLLOWS * offered;
        }
    }

    /** Of at least one point, in any order. */
    public static Knee of(List<Point> curve) {
        List<Point> byRate = curve.stream().sorted(Comparator.comparingDouble(Point::offered)).toList();
        Point highest = byRate.get(byRate.size() - 1);
        if (byRate.stream().allMatch(Point::followed)) {
            return new Knee(highest.offered(), false);
        }
        double best = Double.POSITIVE_INFINITY;
        double knee = highest.offered();
        for (int first = 0; first < byRate.size(); first++) { // the first point that lies on the plateau
            List<Point> plateau = byRate.subList(first, byRate.size());
            double c = Math.exp(plateau.stream().mapToDouble(p -> Math.log(p.achieved())).average().orElseThrow());
            double misfit = byRate.stream().mapToDouble(p -> Math.pow(Math.log(p.achieved() / Math.min(p.offered(), c)), 2)).sum();
            if (misfit < best) {
                best = misfit;
                knee = c;
            }
        }
        return new Knee(knee, true);
    }
}
