package dev.millrace.stages;

/**
 * Hard limits on staleness, in versions and apart from that in time.
 *
 * @param maxVersions tokens sampled more than so many versions before the version current at assembly are masked
 * @param maxAgeMs sequences finished more than so long before the batch was complete are masked; 0 for no such limit
 */
public record StalenessConfig(long maxVersions, long maxAgeMs) {
    public StalenessConfig {
        if (maxVersions < 0) {
            throw new IllegalArgumentException("max_versions must be at least 0: " + maxVersions);
        }
        if (maxAgeMs < 0) {
            throw new IllegalArgumentException("max_age_ms must be at least 0, which is no limit: " + maxAgeMs);
        }
    }

    /** Eight versions, any age. */
    public static StalenessConfig defaults() {
        return new StalenessConfig(8, 0);
    }
}
