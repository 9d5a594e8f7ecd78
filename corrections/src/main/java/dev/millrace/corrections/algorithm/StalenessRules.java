package dev.millrace.corrections.algorithm;

/**
 * Hard limits on staleness, in versions and apart from that in time, and weights that fall with it.
 *
 * @param maxVersions tokens sampled more than so many versions before the version at which the step starts are masked; in a
 *     run's configuration {@code admission.eta} where it is not given
 * @param maxAgeMs sequences finished more than so long before the batch was complete are masked; 0 for no such limit
 * @param halfLifeVersions a token's weight is halved for every so many versions that it is behind; 0 leaves weights alone
 */
public record StalenessRules(long maxVersions, long maxAgeMs, double halfLifeVersions) {
    public StalenessRules {
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
    public static StalenessRules defaults() {
        return new StalenessRules(8, 0, 0.0);
    }
}
