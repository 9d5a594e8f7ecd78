package dev.millrace.report;

import java.util.List;
import java.util.Locale;

/**
 * From where to where an axis of a picture goes, and how its ticks are written: at round values, with no more digits than tell them apart. The page's
 * script does the same.
 *
 * @param from its least value
 * @param to its largest; above {@code from}
 */
record AxisScale(double from, double to) {
    private static final int TICKS = 5;
    /** Of the larger end: an axis covers at least this share, so that a small difference does not look like a large one. */
    private static final double LEAST_SHARE = 0.1;

    private static final double ROUNDING = 1e-9;

    /** Of the places on an x axis, which need not begin at a round value. */
    static AxisScale ofPlaces(List<Double> values, Axis axis) {
        AxisScale data = of(values, axis);
        if (axis.log()) {
            return decades(data);
        }
        return data.to > data.from ? data : new AxisScale(data.from - 0.5, data.to + 0.5);
    }

    /** Of values, which are not empty. */
    static AxisScale ofValues(List<Double> values, Axis axis) {
        AxisScale data = of(values, axis);
        if (axis.log()) {
            return decades(data);
        }
        double low = data.from;
        double high = data.to;
        boolean isFree = axis.from() == null;
        if (isFree && low > 0 && low < high / 2) {
            low = 0;
        }
        double least = Math.max(Math.abs(high), Math.abs(low)) * LEAST_SHARE;
        least = least == 0 ? 1 : least;
        if (isFree && high - low < least) {
            double middle = (high + low) / 2;
            low = middle - least / 2;
            high = middle + least / 2;
        }
        if (high <= low) {
            high = low + least;
        }
        double step = step(high - low);
        Double end = axis.to();
        return new AxisScale(
                isFree ? Math.floor(low / step + ROUNDING) * step : low,
                end != null && end >= high ? end : Math.ceil(high / step - ROUNDING) * step);
    }

    private static AxisScale of(List<Double> values, Axis axis) {
        Double from = axis.from();
        Double to = axis.to();
        double low = values.stream().mapToDouble(Double::doubleValue).min().orElseThrow();
        double high = values.stream().mapToDouble(Double::doubleValue).max().orElseThrow();
        return new AxisScale(from == null ? low : Math.min(from, low), to == null ? high : Math.max(to, high));
    }

    /** Whole decades: there are two labels at least. */
    private static AxisScale decades(AxisScale data) {
        double low = Math.pow(10, Math.floor(Math.log10(data.from) + ROUNDING));
        double high = Math.pow(10, Math.ceil(Math.log10(data.to) - ROUNDING));
        return new AxisScale(low, high > low ? high : 10 * low);
    }

    private static double step(double extent) {
        double rough = extent / TICKS;
        double power = Math.pow(10, Math.floor(Math.log10(rough)));
        for (double factor : new double[] {1, 2, 5}) {
            if (factor * power >= rough * (1 - ROUNDING)) {
                return factor * power;
            }
        }
        return 10 * power;
    }

    /** A tick as it is written: 0, 0.25, 150, 12.8k, 2M. */
    String label(double value) {
        double size = Math.max(Math.abs(from), Math.abs(to));
        if (Math.abs(value) < size * ROUNDING) {
            return "0";
        }
        if (size >= 1e9 || size < 1e-4) {
            return String.format(Locale.ROOT, "%.2g", value);
        }
        double unit = Math.abs(value) >= 1e6 ? 1e6 : Math.abs(value) >= 1e4 ? 1e3 : 1;
        String digits = String.format(Locale.ROOT, "%.4g", value / unit);
        String number = digits.contains("e")
                ? digits
                : digits.replaceAll("(\\.\\d*?)0+$", "$1").replaceAll("\\.$", "");
        return number + (unit == 1e6 ? "M" : unit == 1e3 ? "k" : "");
    }
}
