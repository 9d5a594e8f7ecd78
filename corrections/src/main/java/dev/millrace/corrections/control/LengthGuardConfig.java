package dev.millrace.corrections.control;

/** What a surge of response lengths does to the step. */
public sealed interface LengthGuardConfig {

    /** Nothing. */
    record Off() implements LengthGuardConfig {}

    /**
     * Lowers the step in proportion to the surge: a policy that suddenly writes much longer answers is about to change in a way
     * that group advantages do not see.
     *
     * @param tolerated    how many times the running mean length a batch's mean may be at the full step
     * @param decay        of the running mean, per batch
     * @param smallestScale the step is never lowered below this share
     */
    record Proportional(double tolerated, double decay, double smallestScale) implements LengthGuardConfig {
        public Proportional {
            if (!(tolerated >= 1 && tolerated < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("tolerated must be at least 1 and finite: " + tolerated);
            }
            if (!(decay >= 0 && decay < 1)) {
                throw new IllegalArgumentException("decay must be at least 0 and below 1: " + decay);
            }
            if (!(smallestScale > 0 && smallestScale <= 1)) {
                throw new IllegalArgumentException("smallest_scale must be above 0 and at most 1: " + smallestScale);
            }
        }

        /** A quarter more than the mean of about the last ten batches, down to a tenth of the step. */
        public static Proportional defaults() {
            return new Proportional(1.25, 0.9, 0.1);
        }
    }
}
