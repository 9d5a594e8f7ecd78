package dev.millrace.workloads;

import java.util.ArrayList;
import java.util.List;

/**
 * The rate beyond which more load brings no more throughput: the most that was achieved of what was offered, {@code max_i min(offered_i,
 * achieved_i)}.
 *
 * <p>A point that was disturbed achieves less, never more, and so does one that is offered far more than can be done: its load
 * takes processors from the system. Neither decides. What is achieved beyond what was offered had waited before, and does not count.
 *
 * @param rate the knee; where it was not reached, the highest rate that was offered
 * @param reached false if the system followed the highest load: the knee is somewhere above
 */
public record Knee(double rate, boolean reached) {
    /** A system that achieves less than this of a rate does not follow it. */
    private static final double FOLLOWS = 0.93;

    private static final double NOTHING = 1e-3;

    /**
     * One load and what came of it, in the same unit.
     *
     * @param offered greater than 0
     * @param achieved greater than 0
     */
    public record Point(double offered, double achieved) {
        public Point {
            if (!(offered > 0.0
                    && achieved > 0.0
                    && offered < Double.POSITIVE_INFINITY
                    && achieved < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException(
                        "rates must be finite and greater than 0: offered=" + offered + ", achieved=" + achieved);
            }
        }

        /** The same of a measurement, in which nothing at all may have been achieved: that counts as next to nothing. */
        public static Point of(double offered, double achieved) {
            return new Point(offered, Math.max(NOTHING, achieved));
        }

        /** Whether the system followed this load. */
        public boolean followed() {
            return achieved >= FOLLOWS * offered;
        }
    }

    /** Of at least one point, in any order. */
    public static Knee of(List<Point> curve) {
        double highest = curve.stream().mapToDouble(Point::offered).max().orElseThrow();
        return highestFollowed(curve) == highest
                ? new Knee(highest, false)
                : new Knee(
                        curve.stream()
                                .mapToDouble(p -> Math.min(p.offered(), p.achieved()))
                                .max()
                                .orElseThrow(),
                        true);
    }

    /** The highest rate that was followed at least once; 0 if none was. */
    public static double highestFollowed(List<Point> curve) {
        return curve.stream()
                .filter(Point::followed)
                .mapToDouble(Point::offered)
                .max()
                .orElse(0);
    }

    /** The lowest rate above that; 0 if there is none. */
    public static double lowestNotFollowed(List<Point> curve) {
        double followed = highestFollowed(curve);
        return curve.stream()
                .mapToDouble(Point::offered)
                .filter(rate -> rate > followed)
                .min()
                .orElse(0);
    }

    /**
     * Finds the knee with few measurements: doubles the rate until the system no longer follows, then halves the interval between the
     * highest rate that it followed and the lowest above that it did not, geometrically. Where that is narrow, its upper end is measured
     * again: a point that was only disturbed is taken back, and the search continues above it. The first rate of all is asked twice
     * before the search goes below it.
     */
    public static final class KneeSearch {
        private static final double DOUBLE = 2;
        private static final double NARROW = 1.12;

        private KneeSearch() {}

        /** Measures what is achieved at a rate; greater than 0. */
        @FunctionalInterface
        public interface Measurement {
            double achieved(double offered) throws InterruptedException;
        }

        /**
         * The points that were measured, in order.
         *
         * @param from first rate, greater than 0
         * @param points how many at most, at least 3
         */
        public static List<Point> run(double from, int points, Measurement measurement) throws InterruptedException {
            List<Point> measured = new ArrayList<>();
            while (measured.size() < points) {
                double rate = next(from, measured);
                measured.add(Point.of(rate, measurement.achieved(rate)));
            }
            return measured;
        }

        private static double next(double from, List<Point> measured) {
            double followed = Knee.highestFollowed(measured);
            double notFollowed = Knee.lowestNotFollowed(measured);
            if (measured.isEmpty()) {
                return from;
            }
            if (notFollowed == 0) {
                return followed * DOUBLE;
            }
            if (followed == 0) {
                return measured.size() == 1 ? notFollowed : notFollowed / DOUBLE;
            }
            return notFollowed / followed > NARROW ? Math.sqrt(followed * notFollowed) : notFollowed;
        }
    }
}
