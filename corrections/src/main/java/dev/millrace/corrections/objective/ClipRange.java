package dev.millrace.corrections.objective;

/**
 * The band {@code [1 − low, 1 + high]} in which a ratio moves freely.
 *
 * @param low distance below 1, at least 0
 * @param high distance above 1, at least 0; larger than {@code low} is "clip higher" (DAPO)
 */
public record ClipRange(double low, double high) {
    public ClipRange {
        if (!(low >= 0 && low < Double.POSITIVE_INFINITY) || !(high >= 0 && high < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "clip range must be finite and not negative: low=" + low + ", high=" + high);
        }
    }

    double clip(double ratio) {
        return Math.max(1 - low, Math.min(1 + high, ratio));
    }
}
