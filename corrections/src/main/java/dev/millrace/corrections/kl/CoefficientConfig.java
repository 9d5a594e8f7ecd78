package dev.millrace.corrections.kl;

/** How much a divergence counts, and whether that follows what was measured. */
public sealed interface CoefficientConfig {

    /**
     * The controller of a step.
     *
     * @param coefficient the one in force, which is {@link #initial()} at the first step
     */
    KlController controller(double coefficient);

    /** The coefficient of the first step. */
    double initial();

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
        public KlController controller(double coefficient) {
            return new KlController.Fixed(value);
        }

        @Override
        public double initial() {
            return value;
        }
    }

    /**
     * A coefficient that grows while the divergence is above a target and shrinks while it is below (Ziegler et al. 2019). It
     * is part of a version, so that a learner that starts again goes on with it.
     *
     * @param start   coefficient of the first step
     * @param target target divergence, nats per token
     * @param horizon sequences over which a 20 % error takes full effect, at least a fifth of a batch
     */
    record Adaptive(double start, double target, double horizon) implements CoefficientConfig {
        public Adaptive {
            atLeastZero("start", start);
            positive("target", target);
            positive("horizon", horizon);
        }

        public static Adaptive defaults() {
            return new Adaptive(0.01, 0.02, 10_000);
        }

        @Override
        public KlController controller(double coefficient) {
            return new KlController.Adaptive(coefficient, target, horizon);
        }

        @Override
        public double initial() {
            return start;
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
}
