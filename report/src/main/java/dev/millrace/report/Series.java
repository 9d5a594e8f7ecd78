package dev.millrace.report;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A curve: values over places on the x axis. Where a value is null the curve has a gap.
 *
 * @param name the same in every chart of a report for the same thing, which then has one colour
 * @param style of drawing
 * @param x places, in order
 * @param y a value or null for each
 */
public record Series(String name, Style style, List<@Nullable Double> x, List<@Nullable Double> y) {
    /** How a series is drawn. */
    public enum Style {
        /** Joined. */
        LINE,
        /** Markers alone. */
        POINTS,
        /** Joined, thin and grey: what the others are held against. */
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

    /** A line; values that are not finite are gaps. */
    public static Series line(String name, double[] x, double[] y) {
        return new Series(name, Style.LINE, finite(x), finite(y));
    }

    /** Markers alone. */
    public static Series points(String name, double[] x, double[] y) {
        return new Series(name, Style.POINTS, finite(x), finite(y));
    }

    /** What the others are held against. */
    public static Series reference(String name, double[] x, double[] y) {
        return new Series(name, Style.REFERENCE, finite(x), finite(y));
    }

    private static List<@Nullable Double> finite(double[] values) {
        return Arrays.stream(values)
                .mapToObj(value -> Double.isFinite(value) ? (Double) value : null)
                .toList();
    }
}
