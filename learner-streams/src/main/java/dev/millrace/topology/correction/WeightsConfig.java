package dev.millrace.topology.correction;

import dev.millrace.corrections.ratio.RatioKind;

/**
 * Importance weights of a trajectory's tokens.
 *
 * @param ratio which two policies are compared
 * @param unit whose tokens share a weight
 * @param cap weights are truncated to this; finite, at least 1
 */
public record WeightsConfig(Ratio ratio, Unit unit, double cap) {

    /** Which two policies a weight compares. */
    public enum Ratio {
        /** proximal / behavior: engine mismatch and staleness together. */
        ANCHOR(RatioKind.ANCHOR),
        /** old / behavior: engine mismatch alone. */
        ENGINE_MISMATCH(RatioKind.ENGINE_MISMATCH),
        /** proximal / old: staleness alone. */
        STALENESS(RatioKind.STALENESS);

        private final RatioKind kind;

        Ratio(RatioKind kind) {
            this.kind = kind;
        }

        /** The ratio as the corrections know it. */
        public RatioKind kind() {
            return kind;
        }
    }

    /** Whose tokens share a weight. */
    public enum Unit { TOKEN, SEQUENCE }

    public WeightsConfig {
        if (!(cap >= 1.0 && cap < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("cap must be finite and at least 1: " + cap);
        }
    }

    /** Token weights of proximal over behavior, truncated at 2. */
    public static WeightsConfig defaults() {
        return new WeightsConfig(Ratio.ANCHOR, Unit.TOKEN, 2.0);
    }
}
