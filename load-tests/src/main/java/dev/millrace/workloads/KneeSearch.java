package dev.millrace.workloads;

import dev.millrace.workloads.Knee.Point;
import java.util.ArrayList;
import java.util.List;

/**
 * Finds the knee with few measurements: doubles the rate until the system no longer follows, then halves the interval between the
 * highest rate that it followed and the lowest above that it did not, geometrically. Where that is narrow, its upper end is measured
 * again: a point that was only disturbed is taken back, and the search continues above it. The first rate of all is asked twice
 * before the search goes below it.
 */
public final class KneeSearch {
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
