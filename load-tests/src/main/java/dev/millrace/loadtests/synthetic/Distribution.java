package dev.millrace.loadtests.synthetic;

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
 */
public record Distribution(Kind kind, double value, double spread, long least, long most) {

    /** The shapes to choose from. */
    public enum Kind {
        /** Always the same. */
        FIXED,
        /** Every number between the bounds equally often. */
        UNIFORM,
        /** Many short ones, some long ones. */
        LOG_NORMAL,
        /** A power law: a few that are very long. */
        PARETO
    }

    public Distribution {
        if (least < 0 || most < least) {
            throw new IllegalArgumentException("least must be at least 0 and most at least least: least=" + least + ", most=" + most);
        }
        if (!(value >= 0.0 && value < 1e15)) {
            throw new IllegalArgumentException("value must be in [0, 1e15): " + value);
        }
        if (kind == Kind.FIXED && (value < least || value > most)) {
            throw new IllegalArgumentException("value of a fixed distribution must lie in [least " + least + ", most " + most + "]: " + value);
        }
        boolean needsSpread = kind == Kind.LOG_NORMAL || kind == Kind.PARETO;
        if (needsSpread && !(spread > 0.0 && spread < Double.POSITIVE_INFINITY && value > 0.0)) {
            throw new IllegalArgumentException("value and spread of a " + kind.name().toLowerCase(java.util.Locale.ROOT)
                + " distribution must be greater than 0: value=" + value + ", spread=" + spread);
        }
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
        };
        return Math.min(most, Math.max(least, Math.round(drawn)));
    }
}
