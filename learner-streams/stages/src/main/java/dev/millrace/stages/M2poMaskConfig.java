package dev.millrace.stages;

/**
 * The second-moment mask over a batch.
 *
 * @param enabled whether tokens are masked by it
 * @param threshold bound on the mean squared log ratio of proximal to behavior; finite, at least 0
 * @param harmfulOnly whether only tokens whose update moves the policy further away are counted and masked
 */
public record M2poMaskConfig(boolean enabled, double threshold, boolean harmfulOnly) {
    public M2poMaskConfig {
        if (!(threshold >= 0.0 && threshold < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("threshold must be finite and at least 0: " + threshold);
        }
    }

    /** On, at 0.04, harmful tokens only. */
    public static M2poMaskConfig defaults() {
        return new M2poMaskConfig(true, 0.04, true);
    }
}
