package dev.millrace.report;

import java.util.Arrays;
import java.util.Locale;

/** A mean with its 95 % Student interval; bounds are NaN for fewer than two values. */
public record SampleMean(double mean, double low, double high, int values) {
    /** 0.975 quantiles by degrees of freedom, from 1. */
    private static final double[] STUDENT = {
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
        2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042
    };

    private static final double NORMAL = 1.960;

    /** Ignores non-finite values. */
    public static SampleMean of(double... values) {
        double[] finite = Arrays.stream(values).filter(Double::isFinite).toArray();
        double sum = Arrays.stream(finite).sum();
        double mean = sum / finite.length; // NaN of none
        double squares = Arrays.stream(finite)
                .map(value -> (value - mean) * (value - mean))
                .sum();
        return ofSquares(finite.length, mean, squares);
    }

    /** @param squares sum of squared distances from the mean */
    public static SampleMean ofSquares(int values, double mean, double squares) {
        if (values < 2) {
            return new SampleMean(values == 0 ? Double.NaN : mean, Double.NaN, Double.NaN, values);
        }
        double error = Math.sqrt(squares / (values - 1) / values);
        double half = error * (values - 2 < STUDENT.length ? STUDENT[values - 2] : NORMAL);
        return new SampleMean(mean, mean - half, mean + half, values);
    }

    /** False without an interval. */
    public boolean excludes(double value) {
        return value < low || value > high;
    }

    /** Such as {@code 0.33 (0.29 to 0.37)}. */
    public String shown(String format) {
        return Double.isNaN(low)
                ? String.format(Locale.ROOT, format, mean)
                : String.format(Locale.ROOT, format + " (" + format + " to " + format + ")", mean, low, high);
    }
}
