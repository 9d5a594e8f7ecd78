package dev.millrace.loadtests.knee;

import dev.millrace.loadtests.knee.Knee.Point;
import java.util.ArrayList;
import java.util.List;

/**
 * Finds the knee with few measurements: doubles the rate until the system no longer follows, then measures around where the
 * knee seems to be.
 */
public final class KneeSearch {
    private static final double[] AROUND = {0.9, 1.1, 0.8, 1.25, 1.0, 0.7, 1.4};

    private KneeSearch() {
    }

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
        double rate = from;
        while (measured.size() < points) {
            Point point = new Point(rate, measurement.achieved(rate));
            measured.add(point);
            if (!point.followed()) {
                break;
            }
            rate *= 2;
        }
        for (int i = 0; measured.size() < points; i++) {
            double around = Knee.of(measured).rate() * AROUND[i % AROUND.length];
            measured.add(new Point(around, measurement.achieved(around)));
        }
        return measured;
    }
}
