package dev.millrace.workloads;

import java.util.ArrayList;
import java.util.List;

/**
 * The rate at which throughput saturates: {@code max_i min(offered_i, achieved_i)}.
 *
 * <p>Disturbed or overloaded points achieve less and do not decide; what is achieved beyond the offer was backlog and
 * does not count.
 *
 * @param rate if not reached, the highest rate offered
 * @param reached false if the system followed the highest load
 */
public record Knee(double rate, boolean reached) {
    /** Below this share of a rate it is not followed. */
    private static final double FOLLOWS = 0.93;

    private static final double NOTHING = 1e-3;

    /**
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

        /** Counts no achievement as next to nothing. */
        public static Point of(double offered, double achieved) {
            return new Point(offered, Math.max(NOTHING, achieved));
        }

        public boolean followed() {
            return achieved >= FOLLOWS * offered;
        }
    }

    /** @param curve at least one point, in any order */
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

    /** 0 if none was followed. */
    public static double highestFollowed(List<Point> curve) {
        return curve.stream()
                .filter(Point::followed)
                .mapToDouble(Point::offered)
                .max()
                .orElse(0);
    }

    public static double lowestNotFollowed(List<Point> curve) {
        double followed = highestFollowed(curve);
        return curve.stream()
                .mapToDouble(Point::offered)
                .filter(rate -> rate > followed)
                .min()
                .orElse(0);
    }

    /**
     * Finds the knee with few measurements: doubles the rate until the system no longer follows, then bisects
     * geometrically. Once the interval is narrow, it measures the upper end again, so that a disturbed point is taken
     * back. The first rate is tried twice before lower ones.
     */
    public static final class KneeSearch {
        private static final double DOUBLE = 2;
        private static final double NARROW = 1.12;

        private KneeSearch() {}

        @FunctionalInterface
        public interface Measurement {
            double achieved(double offered) throws InterruptedException;
        }

        /**
         * @param from first rate, greater than 0
         * @param points at least 3
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
