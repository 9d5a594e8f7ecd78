package dev.millrace.workloads.topology;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.random.RandomGenerator;

/**
 * A distribution of whole numbers. Draws are rounded, then clamped to {@code [least, most]}.
 *
 * @param value the number of {@code fixed}, else the median; unused by {@code uniform}; at least 0
 * @param spread standard deviation of the logarithm ({@code log_normal}) or tail index ({@code pareto}: 1.5 is heavy,
 *     3 light); greater than 0 for these
 * @param least at least 0
 * @param most at least {@code least}
 * @param quantiles of {@code empirical}: equally spaced in probability, ascending, at least two, interpolated linearly
 */
public record Distribution(Kind kind, double value, double spread, long least, long most, List<Long> quantiles) {

    public enum Kind {
        FIXED,
        UNIFORM,
        LOG_NORMAL,
        PARETO,
        EMPIRICAL
    }

    /** Quantiles kept of counted numbers, one per hundredth. */
    private static final int COUNTED = 101;

    public Distribution {
        if (least < 0 || most < least) {
            throw new IllegalArgumentException(
                    "least must be at least 0 and most at least least: least=" + least + ", most=" + most);
        }
        if (!(value >= 0.0 && value < 1e15)) {
            throw new IllegalArgumentException("value must be in [0, 1e15): " + value);
        }
        if (kind == Kind.FIXED && (value < least || value > most)) {
            throw new IllegalArgumentException(
                    "value of a fixed distribution must lie in [least " + least + ", most " + most + "]: " + value);
        }
        quantiles = List.copyOf(quantiles);
        if ((kind == Kind.EMPIRICAL) != (quantiles.size() >= 2) || kind != Kind.EMPIRICAL && !quantiles.isEmpty()) {
            throw new IllegalArgumentException(
                    "quantiles must be two or more numbers for an empirical distribution and none for the others: kind="
                            + kind.name().toLowerCase(Locale.ROOT) + ", " + quantiles.size() + " quantiles");
        }
        for (int i = 1; i < quantiles.size(); i++) {
            if (quantiles.get(i) < quantiles.get(i - 1)) {
                throw new IllegalArgumentException(
                        "quantiles must not fall: " + quantiles.get(i - 1) + " before " + quantiles.get(i));
            }
        }
        boolean needsSpread = kind == Kind.LOG_NORMAL || kind == Kind.PARETO;
        if (needsSpread && !(spread > 0.0 && spread < Double.POSITIVE_INFINITY && value > 0.0)) {
            throw new IllegalArgumentException(
                    "value and spread of a " + kind.name().toLowerCase(Locale.ROOT)
                            + " distribution must be greater than 0: value=" + value + ", spread=" + spread);
        }
    }

    public Distribution(Kind kind, double value, double spread, long least, long most) {
        this(kind, value, spread, least, most, List.of());
    }

    /** Empirical distribution of at least one number; sorts in place. */
    public static Distribution counted(long[] numbers) {
        Arrays.sort(numbers);
        List<Long> quantiles = new ArrayList<>(COUNTED);
        for (int i = 0; i < COUNTED; i++) {
            quantiles.add(numbers[(int) Math.round(i / (COUNTED - 1.0) * (numbers.length - 1))]);
        }
        return new Distribution(Kind.EMPIRICAL, 0, 0, numbers[0], numbers[numbers.length - 1], quantiles);
    }

    public static Distribution fixed(long number) {
        return new Distribution(Kind.FIXED, number, 0, number, number);
    }

    public static Distribution uniform(long least, long most) {
        return new Distribution(Kind.UNIFORM, 0, 0, least, most);
    }

    public long draw(RandomGenerator random) {
        double drawn = switch (kind) {
            case FIXED -> value;
            case UNIFORM -> random.nextLong(least, most + 1);
            case LOG_NORMAL -> value * Math.exp(spread * random.nextGaussian());
            // u^(-1/a) has median 2^(1/a), which is divided out
            case PARETO -> value * Math.pow(2 * (1 - random.nextDouble()), -1 / spread);
            case EMPIRICAL -> between(random.nextDouble() * (quantiles.size() - 1));
        };
        return Math.min(most, Math.max(least, Math.round(drawn)));
    }

    private double between(double place) {
        int below = (int) place;
        return quantiles.get(below) + (place - below) * (quantiles.get(below + 1) - quantiles.get(below));
    }
}
