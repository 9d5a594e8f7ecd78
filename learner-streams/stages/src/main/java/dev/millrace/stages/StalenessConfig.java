package dev.millrace.stages;

/**
 * Hard limits on staleness, in versions and apart from that in time, and weights that fall with it.
 *
 * @param maxVersions tokens sampled more than so many versions before the version current at assembly are masked
 * @param maxAgeMs sequences finished more than so long before the batch was complete are masked; 0 for no such limit
 * @param halfLifeVersions the learner halves a token's weight for every so many versions that it is behind; 0 leaves
 *     weights alone
 */
public record StalenessConfig(long maxVersions, long maxAgeMs, double halfLifeVersions) {
    public StalenessConfig {
        if (maxVersions < 0) {
            throw new IllegalArgumentException("max_versions must be at least 0: " + maxVersions);
        }
        if (maxAgeMs < 0) {
            throw new IllegalArgumentException("max_age_ms must be at least 0, which is no limit: " + maxAgeMs);
        }
        if (!(halfLifeVersions >= 0.0 && halfLifeVersions < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "half_life_versions must be finite and at least 0, which leaves weights alone: "
                            + halfLifeVersions);
        }
    }

    /** Eight versions, any age, weights left alone. */
    public static StalenessConfig defaults() {
        return new StalenessConfig(8, 0, 0.0);
    }
}
