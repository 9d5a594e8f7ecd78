package dev.millrace.corrections.objective;

/** Argument checks whose messages name the configuration key. */
final class Bounds {
    private Bounds() {}

    static void atLeastZero(String key, double value) {
        if (!(value >= 0 && value < Double.POSITIVE_INFINITY)) { // negated so that NaN is refused too
            throw new IllegalArgumentException(key + " must be at least 0 and finite: " + value);
        }
    }

    static void positive(String key, double value) {
        if (!(value > 0 && value < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(key + " must be above 0 and finite: " + value);
        }
    }

    static void inUnit(String key, double value) {
        if (!(value > 0 && value <= 1)) {
            throw new IllegalArgumentException(key + " must be above 0 and at most 1: " + value);
        }
    }

    static void aboveOne(String key, double value) {
        if (!(value > 1)) {
            throw new IllegalArgumentException(key + " must be above 1: " + value);
        }
    }

    /** Bounds of a weight on either side of 1. */
    static void aroundOne(String lowerKey, double lower, String upperKey, double upper) {
        if (!(lower >= 0 && lower <= 1)) {
            throw new IllegalArgumentException(lowerKey + " must be at least 0 and at most 1: " + lower);
        }
        if (!(upper >= 1 && upper < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(upperKey + " must be at least 1 and finite: " + upper);
        }
    }
}
