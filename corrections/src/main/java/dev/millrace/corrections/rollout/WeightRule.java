package dev.millrace.corrections.rollout;

/**
 * How a ratio becomes a weight: truncated at an upper bound, or kept within a band and set to 0 outside it.
 *
 * <p>The level says whose ratio: the token's own, or the product over its sequence.
 */
public sealed interface WeightRule {

    /** One weight per token, or one per sequence. */
    Level level();

    double upper();

    /** Below this a ratio counts as low: the band's lower end, or the reciprocal of the cap. */
    double lower();

    /** The name of a level is the value of {@code rollout_is}. */
    enum Level {
        TOKEN,
        SEQUENCE
    }

    /**
     * Truncated importance sampling: {@code min(rho, upper)}.
     *
     * @param upper positive
     */
    record Truncate(Level level, double upper) implements WeightRule {
        public Truncate {
            requirePositive(upper);
        }

        @Override
        public double lower() {
            return 1.0 / upper;
        }
    }

    /**
     * IcePop: {@code rho} if {@code lower <= rho <= upper}, else 0.
     *
     * @param lower positive, at most {@code upper}
     * @param upper positive
     */
    record Band(Level level, double lower, double upper) implements WeightRule {
        public Band {
            requirePositive(upper);
            requirePositive(lower);
            if (lower > upper) {
                throw new IllegalArgumentException(
                        "rollout_is_threshold must have lower <= upper: lower=" + lower + ", upper=" + upper);
            }
        }
    }

    /**
     * The rule that a threshold says: {@code upper} truncates, {@code lower_upper} is a band.
     *
     * @throws IllegalArgumentException quoting the text
     */
    static WeightRule of(String key, Level level, String threshold) {
        String spec = threshold.strip();
        int bar = spec.indexOf('_');
        if (bar < 0) {
            return new Truncate(level, ThresholdText.number(key, spec));
        }
        return new Band(
                level,
                ThresholdText.number(key, spec.substring(0, bar)),
                ThresholdText.number(key, spec.substring(bar + 1)));
    }

    /** Refuses bounds that are infinite, or that take its weight of 1 from an on-policy token. */
    default void requireOneWithin(String setting) {
        boolean holdsOne = upper() >= 1.0 && (this instanceof Truncate || lower() <= 1.0);
        if (!holdsOne || Double.isInfinite(upper())) {
            throw new IllegalArgumentException(
                    setting + " must be finite and leave an on-policy token its weight of 1: lower <= 1 <= upper");
        }
    }

    private static void requirePositive(double bound) {
        if (!(bound > 0)) {
            throw new IllegalArgumentException("rollout_is_threshold must be positive: " + bound);
        }
    }
}
