package dev.millrace.corrections.kl;

/** Coefficient of a KL penalty, and its reaction to the measured divergence. Immutable. */
public sealed interface CoefficientConfig {

    /** The coefficient of the first step. */
    double initial();

    /**
     * The coefficient after a step.
     *
     * @param coefficient in force, which is {@link #initial()} at the first step
     * @param measuredKl divergence of the batch just trained on; finite
     * @param sequences of that batch
     */
    double updated(double coefficient, double measuredKl, long sequences);

    /**
     * A coefficient that stays.
     *
     * @param value the coefficient
     */
    record Fixed(double value) implements CoefficientConfig {
        public Fixed {
            atLeastZero("value", value);
        }

        public static Fixed defaults() {
            return new Fixed(0.001);
        }

        @Override
        public double initial() {
            return value;
        }

        @Override
        public double updated(double coefficient, double measuredKl, long sequences) {
            requireMeasured(measuredKl);
            return value;
        }
    }

    /**
     * A coefficient that grows while the divergence is above a target and shrinks while it is below:
     * {@code c <- c (1 + clip(kl / target - 1, +-0.2) sequences / horizon)}. It is stored with each version, so that a
     * restarted learner continues with it.
     *
     * <p>Source: Ziegler et al. 2019 (arXiv 1909.08593).
     *
     * @param start   coefficient of the first step; 0 stays 0
     * @param target target divergence, nats per token
     * @param horizon sequences over which a 20 % error takes full effect, at least a fifth of a batch
     */
    record Adaptive(double start, double target, double horizon) implements CoefficientConfig {
        private static final double LARGEST_ERROR = 0.2;

        public Adaptive {
            atLeastZero("start", start);
            positive("target", target);
            positive("horizon", horizon);
        }

        public static Adaptive defaults() {
            return new Adaptive(0.01, 0.02, 10_000);
        }

        @Override
        public double initial() {
            return start;
        }

        /**
         * @throws IllegalArgumentException if the batch is more than 5 horizons while the divergence is far below its target, so
         *     that the coefficient would not stay positive
         */
        @Override
        public double updated(double coefficient, double measuredKl, long sequences) {
            double multiplier = multiplier(measuredKl, sequences);
            if (!(multiplier > 0)) {
                throw new IllegalArgumentException("the coefficient would be multiplied by " + multiplier + ": "
                        + sequences + " sequences are too many for horizon=" + horizon + "; raise the horizon");
            }
            return coefficient * multiplier;
        }

        /** The factor of one update; not positive where {@link #updated} refuses. */
        public double multiplier(double measuredKl, long sequences) {
            requireMeasured(measuredKl);
            double error = Math.max(-LARGEST_ERROR, Math.min(LARGEST_ERROR, measuredKl / target - 1));
            return 1 + error * sequences / horizon;
        }
    }

    private static void atLeastZero(String key, double value) {
        if (!(value >= 0 && value < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(key + " must be at least 0 and finite: " + value);
        }
    }

    private static void positive(String key, double value) {
        if (!(value > 0 && value < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(key + " must be above 0 and finite: " + value);
        }
    }

    private static void requireMeasured(double kl) {
        if (!Double.isFinite(kl)) {
            throw new IllegalArgumentException("measured KL must be finite: " + kl);
        }
    }
}
