package dev.millrace.workloads.topology;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.random.RandomGenerator;

/**
 * A distribution of whole numbers: lengths in tokens, versions behind, milliseconds.
 *
 * <p>What is drawn is rounded, then moved to the nearer bound where it lies outside {@code [least, most]}.
 *
 * @param kind which one
 * @param value of {@code fixed} the number itself, of {@code uniform} nothing, of the others the median; at least 0
 * @param spread of {@code log_normal} the standard deviation of the logarithm, of {@code pareto} the tail index (1.5 is
 *     heavy, 3 is light); greater than 0 for these two
 * @param least smallest number that is drawn, at least 0
 * @param most largest number that is drawn, at least {@code least}
 * @param quantiles of {@code empirical} numbers of equally spaced probability, the smallest first and the largest last, at
 *     least two; between two of them every number is as likely. Empty for the others
 */
public record Distribution(Kind kind, double value, double spread, long least, long most, List<Long> quantiles) {

    /** The shapes to choose from. */
    public enum Kind {
        /** Always the same. */
        FIXED,
        /** Every number between the bounds equally often. */
        UNIFORM,
        /** Many short ones, some long ones. */
        LOG_NORMAL,
        /** A power law: a few that are very long. */
        PARETO,
        /** As often as they were counted. */
        EMPIRICAL
    }

    /** Quantiles of what is counted: one for every hundredth. */
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

    /** One that needs no quantiles. */
    public Distribution(Kind kind, double value, double spread, long least, long most) {
        this(kind, value, spread, least, most, List.of());
    }

    /** As often as they are among these, of which there is at least one; sorted in place. */
    public static Distribution counted(long[] numbers) {
        Arrays.sort(numbers);
        List<Long> quantiles = new ArrayList<>(COUNTED);
        for (int i = 0; i < COUNTED; i++) {
            quantiles.add(numbers[(int) Math.round(i / (COUNTED - 1.0) * (numbers.length - 1))]);
        }
        return new Distribution(Kind.EMPIRICAL, 0, 0, numbers[0], numbers[numbers.length - 1], quantiles);
    }

    /** Always this number. */
    public static Distribution fixed(long number) {
        return new Distribution(Kind.FIXED, number, 0, number, number);
    }

    /** Every number from {@code least} to {@code most} equally often. */
    public static Distribution uniform(long least, long most) {
        return new Distribution(Kind.UNIFORM, 0, 0, least, most);
    }

    /** The next number. */
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
