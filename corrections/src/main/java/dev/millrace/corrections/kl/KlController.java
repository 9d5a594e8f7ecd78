package dev.millrace.corrections.kl;

/** The coefficient of a KL penalty, and how it reacts to the divergence it lets through. Immutable. */
public sealed interface KlController {

    /** The coefficient in force. */
    double coefficient();

    /**
     * The controller after an update.
     *
     * @param measuredKl divergence of the batch just trained on; finite
     * @param steps how many sequences it had
     */
    KlController updated(double measuredKl, long steps);

    /**
     * A coefficient that stays.
     *
     * @param coefficient finite and not negative
     */
    record Fixed(double coefficient) implements KlController {
        public Fixed {
            requireCoefficient(coefficient);
        }

        @Override
        public Fixed updated(double measuredKl, long steps) {
            requireMeasured(measuredKl);
            return this;
        }
    }

    /**
     * A coefficient that grows while the divergence is above its target and shrinks while it is below:
     * {@code c ← c · (1 + clip(kl/target − 1, ±0.2) · steps / horizon)}.
     *
     * <p>Source: Ziegler et al. 2019 (arXiv 1909.08593).
     *
     * @param coefficient finite and not negative; 0 stays 0
     * @param target divergence to settle at; positive
     * @param horizon steps over which a full error of 20 % takes effect once; positive
     */
    record Adaptive(double coefficient, double target, double horizon) implements KlController {
        private static final double LARGEST_ERROR = 0.2;

        public Adaptive {
            requireCoefficient(coefficient);
            if (!(target > 0 && target < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("target KL must be positive and finite: " + target);
            }
            if (!(horizon > 0 && horizon < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("horizon must be positive and finite: " + horizon);
            }
        }

        /**
         * @throws IllegalArgumentException if {@code steps} is so many horizons that the coefficient would not stay
         *     positive: more than 5 while the divergence is far below its target
         */
        @Override
        public Adaptive updated(double measuredKl, long steps) {
            double multiplier = multiplier(measuredKl, steps);
            if (!(multiplier > 0)) {
                throw new IllegalArgumentException("the coefficient would be multiplied by " + multiplier + ": steps="
                        + steps + " is too many for horizon=" + horizon + "; raise the horizon");
            }
            return new Adaptive(coefficient * multiplier, target, horizon);
        }

        /** The factor of one update; not positive where {@link #updated} refuses. */
        public double multiplier(double measuredKl, long steps) {
            requireMeasured(measuredKl);
            double error = Math.max(-LARGEST_ERROR, Math.min(LARGEST_ERROR, measuredKl / target - 1));
            return 1 + error * steps / horizon;
        }
    }

    private static void requireCoefficient(double coefficient) {
        if (!(coefficient >= 0 && coefficient < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("KL coefficient must be finite and not negative: " + coefficient);
        }
    }

    private static void requireMeasured(double kl) {
        if (!Double.isFinite(kl)) {
            throw new IllegalArgumentException("measured KL must be finite: " + kl);
        }
    }
}
