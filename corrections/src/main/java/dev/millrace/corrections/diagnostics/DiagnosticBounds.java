package dev.millrace.corrections.diagnostics;

/**
 * Bounds for counting in diagnostics: they show what a correction would do, and change nothing.
 *
 * @param cap a weight above it would be truncated; finite, at least 1
 * @param clipLow a ratio below {@code 1 - clipLow} would be clipped; in (0, 1]
 * @param clipHigh a ratio above {@code 1 + clipHigh} would be clipped; positive and finite
 */
public record DiagnosticBounds(double cap, double clipLow, double clipHigh) {
    /** A cap of 2, and PPO's clip range of 0.2 on both sides. */
    public static final DiagnosticBounds DEFAULT = new DiagnosticBounds(2.0, 0.2, 0.2);

    public DiagnosticBounds {
        if (!(cap >= 1 && cap < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("cap must be finite and at least 1: " + cap);
        }
        if (!(clipLow > 0 && clipLow <= 1)) {
            throw new IllegalArgumentException("clipLow must be in (0, 1]: " + clipLow);
        }
        if (!(clipHigh > 0 && clipHigh < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("clipHigh must be positive and finite: " + clipHigh);
        }
    }
}
