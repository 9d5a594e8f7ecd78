package dev.millrace.experiments;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/**
 * The law {@code L = c · ESS^alpha} between the lag of a run and the effective sample size that it leaves, fitted to runs.
 *
 * <p>ESS is the ratio {@code (Σ w)² / (n Σ w²)} of the raw sequence weights, in (0, 1]; it falls with the lag, so alpha is
 * negative. Read the other way it bounds the lag: who wants to keep an ESS ratio of e may let rollouts be {@code c · e^alpha}
 * versions old. The lag is set and the ESS is what scatters, so the line is fitted as {@code log ESS = a + b log L} by least
 * squares, and {@code alpha = 1/b}, {@code c = exp(-a/b)}.
 *
 * <p>Intervals are percentiles of fits to runs drawn anew, with replacement, {@value #RESAMPLES} times. What the power law is held
 * against is the other curve with two parameters that suggests itself, {@code log ESS = a + b L}.
 *
 * @param c        lag at which the ratio would be 1
 * @param alpha    exponent
 * @param rSquared share of the variance of log ESS that the power law explains
 * @param exponentialRSquared the same of the exponential
 * @param bound    the least constant for which no run that keeps up lies above {@code bound · ESS^alpha}; NaN if none does
 */
public record LagLaw(Interval c, Interval alpha, double rSquared, double exponentialRSquared, double bound, int runs) {
    static final int RESAMPLES = 2000;
    private static final double TAIL = 0.025;
    private static final double GOOD = 0.8;
    private static final long SEED = 20_260_101;
    private static final int LEAST_LAGS = 3;

    /** A value with the interval that holds 95 % of the resampled ones. */
    public record Interval(double value, double low, double high) {}

    /** What the law is fitted to: a lag of at least 1, a ratio in (0, 1]. */
    public record Point(double lag, double ess, boolean keepsUp) {
        public Point {
            if (!(lag >= 1 && ess > 0 && ess <= 1.000001)) {
                throw new IllegalArgumentException(
                        "a lag of at least 1 and an ESS ratio in (0, 1] are needed: lag=" + lag + ", ess=" + ess);
            }
        }
    }

    private record Line(double a, double b, double rSquared) {
        double alpha() {
            return 1 / b;
        }

        double c() {
            return Math.exp(-a / b);
        }
    }

    /** @throws IllegalArgumentException with fewer than three different lags, which no line can be held against */
    static LagLaw fit(List<Point> points) {
        if (points.stream().mapToDouble(Point::lag).distinct().count() < LEAST_LAGS) {
            throw new IllegalArgumentException("a law needs runs at " + LEAST_LAGS + " lags of at least 1 or more");
        }
        Line line = line(points, true);
        List<Line> resampled = new ArrayList<>();
        SplittableRandom random = new SplittableRandom(SEED);
        while (resampled.size() < RESAMPLES) {
            List<Point> drawn = random.ints(points.size(), 0, points.size())
                    .mapToObj(points::get)
                    .toList();
            if (drawn.stream().mapToDouble(Point::lag).distinct().count() >= 2) {
                resampled.add(line(drawn, true));
            }
        }
        double bound = points.stream()
                .filter(Point::keepsUp)
                .mapToDouble(p -> p.lag() / Math.pow(p.ess(), line.alpha()))
                .max()
                .orElse(Double.NaN);
        return new LagLaw(
                interval(line.c(), resampled.stream().mapToDouble(Line::c).toArray()),
                interval(
                        line.alpha(),
                        resampled.stream().mapToDouble(Line::alpha).toArray()),
                line.rSquared(),
                line(points, false).rSquared(),
                bound,
                points.size());
    }

    private static Line line(List<Point> points, boolean power) {
        double[] x = points.stream()
                .mapToDouble(p -> power ? Math.log(p.lag()) : p.lag())
                .toArray();
        double[] y = points.stream().mapToDouble(p -> Math.log(p.ess())).toArray();
        double meanX = Arrays.stream(x).average().orElseThrow();
        double meanY = Arrays.stream(y).average().orElseThrow();
        double sxx = 0;
        double sxy = 0;
        double syy = 0;
        for (int i = 0; i < x.length; i++) {
            sxx += (x[i] - meanX) * (x[i] - meanX);
            sxy += (x[i] - meanX) * (y[i] - meanY);
            syy += (y[i] - meanY) * (y[i] - meanY);
        }
        double b = sxy / sxx;
        return new Line(meanY - b * meanX, b, syy == 0 ? 1 : sxy * sxy / (sxx * syy));
    }

    private static Interval interval(double value, double[] resampled) {
        Arrays.sort(resampled);
        return new Interval(
                value, resampled[(int) (TAIL * resampled.length)], resampled[(int) ((1 - TAIL) * resampled.length)]);
    }

    /** The lag that a ratio goes with. */
    double lagAt(double ess) {
        return c.value() * Math.pow(ess, alpha.value());
    }

    /**
     * Whether the runs speak for a power law: it explains most of the variance, ESS falls with the lag in all but a few of the
     * resampled fits, and an exponential does not explain more.
     */
    boolean isSupported() {
        return rSquared >= GOOD && alpha.high() < 0 && alpha.low() < 0 && rSquared >= exponentialRSquared;
    }

    /** The same in a sentence. */
    String verdict() {
        String reason = rSquared < GOOD
                ? "the power law explains less than " + GOOD + " of the variance of log ESS"
                : alpha.high() >= 0 || alpha.low() >= 0
                        ? "the interval of alpha holds both signs"
                        : rSquared < exponentialRSquared ? "an exponential in the lag explains more" : "";
        return reason.isEmpty() ? "the runs support the law" : "the runs do not support the law: " + reason;
    }
}
