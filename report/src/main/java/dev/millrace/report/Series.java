package dev.millrace.report;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A curve; null values are gaps.
 *
 * @param name determines the colour, across charts
 * @param x in order
 */
public record Series(String name, Style style, List<@Nullable Double> x, List<@Nullable Double> y) {
    public enum Style {
        LINE,
        POINTS,
        /** Thin and grey baseline. */
        REFERENCE
    }

    public Series {
        if (x.size() != y.size()) {
            throw new IllegalArgumentException("a value for each place is needed: places=" + x.size() + ", values="
                    + y.size() + ", series=" + name);
        }
        x = Collections.unmodifiableList(new ArrayList<>(x));
        y = Collections.unmodifiableList(new ArrayList<>(y));
    }

    public static Series line(String name, double[] x, double[] y) {
        return new Series(name, Style.LINE, finite(x), finite(y));
    }

    public static Series points(String name, double[] x, double[] y) {
        return new Series(name, Style.POINTS, finite(x), finite(y));
    }

    public static Series reference(String name, double[] x, double[] y) {
        return new Series(name, Style.REFERENCE, finite(x), finite(y));
    }

    private static List<@Nullable Double> finite(double[] values) {
        return Arrays.stream(values)
                .mapToObj(value -> Double.isFinite(value) ? (Double) value : null)
                .toList();
    }
}
