package dev.millrace.report;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** Repeated measurements of one quantity. */
public record Sample(double median, double min, double max, int count) {

    public static Sample of(List<Double> values) {
        double[] sorted =
                values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        if (sorted.length == 0) {
            throw new IllegalArgumentException("a sample needs at least one value");
        }
        double median = (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
        return new Sample(median, sorted[0], Arrays.stream(sorted).max().getAsDouble(), sorted.length);
    }

    /** Median, with minimum and maximum in brackets. */
    public String range(int decimals) {
        String one = "%." + decimals + "f";
        return String.format(Locale.ROOT, one + " (" + one + " to " + one + ")", median, min, max);
    }
}
