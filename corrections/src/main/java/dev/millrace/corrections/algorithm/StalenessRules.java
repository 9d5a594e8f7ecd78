package dev.millrace.corrections.algorithm;

/**
 * Hard limits on staleness, in versions and apart from that in time, and weights that fall with it.
 *
 * @param maxVersions largest staleness of an unmasked token; in a run, {@code admission.eta} unless set
 * @param maxAgeMs age at assembly above which sequences are masked; 0 for none
 * @param halfLifeVersions staleness that halves a token's weight; 0 for none
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
