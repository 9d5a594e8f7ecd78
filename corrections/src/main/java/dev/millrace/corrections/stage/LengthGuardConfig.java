package dev.millrace.corrections.stage;

/** What a surge of response lengths does to the step. */
public sealed interface LengthGuardConfig {

    record Off() implements LengthGuardConfig {}

    /**
     * Lowers the step while answers are much longer than they were: a length that surges comes, as a rule, some tens of steps
     * before a collapse, while group advantages still look well.
     *
     * @param growth largest growth of the mean length over {@code steps} steps at the full step
     * @param steps steps back to compare with
     * @param scale factor on the learning rate above that
     */
    record Surge(double growth, int steps, double scale) implements LengthGuardConfig {
        public Surge {
            if (!(growth >= 1 && growth < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("growth must be at least 1 and finite: " + growth);
            }
            if (!(steps >= 1 && steps <= 1000)) {
                throw new IllegalArgumentException(
                        "steps must be 1 to 1000, since every version stores one length per step: " + steps);
            }
            if (!(scale > 0 && scale < 1)) {
                throw new IllegalArgumentException("scale must be above 0 and below 1: " + scale);
            }
        }

        /** More than a fifth in a hundred steps halves the step (Zhang et al. 2026, arXiv 2602.01826). */
        public static Surge defaults() {
            return new Surge(1.2, 100, 0.5);
        }
    }
}
