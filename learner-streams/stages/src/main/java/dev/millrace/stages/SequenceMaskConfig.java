package dev.millrace.stages;

/**
 * Off-policy sequence mask: sequences of negative advantage from which the policy has drifted are masked.
 *
 * @param enabled whether sequences are masked by it
 * @param threshold largest mean of log behavior minus log proximal that such a sequence may have; finite, at least 0
 */
public record SequenceMaskConfig(boolean enabled, double threshold) {
    public SequenceMaskConfig {
        if (!(threshold >= 0.0 && threshold < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("threshold must be finite and at least 0: " + threshold);
        }
    }

    /** Off. */
    public static SequenceMaskConfig defaults() {
        return new SequenceMaskConfig(false, 0.1);
    }
}
