package dev.millrace.corrections.weights;

/** What a bound on a weight must satisfy. */
final class Caps {
    private Caps() {}

    /** The log of {@code cap}, which must be finite and at least 1, so that on-policy tokens keep weight 1. */
    static double logOfCap(double cap) {
        if (!(cap >= 1.0 && cap < Double.POSITIVE_INFINITY)) { // negated so that NaN is refused too
            throw new IllegalArgumentException("cap must be finite and at least 1: cap=" + cap);
        }
        return Math.log(cap);
    }

    /** Refuses a setting of that name that cannot be a cap. */
    static void requireThreshold(double threshold) {
        if (!(threshold >= 1.0 && threshold < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "threshold must be finite and at least 1, so that on-policy tokens keep weight 1: " + threshold);
        }
    }

    /** Refuses a band that does not contain 1, because it would mask every on-policy token. */
    static void requireBand(double lower, double upper) {
        if (!(lower > 0.0 && lower <= 1.0 && upper >= 1.0 && upper < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "band must satisfy 0 < lower <= 1 <= upper < infinity: lower=" + lower + ", upper=" + upper);
        }
    }
}
