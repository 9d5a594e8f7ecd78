package dev.millrace.topology.correction;

/**
 * Hard limit on staleness.
 *
 * @param maxVersions tokens sampled more than so many versions before the version current at assembly are masked
 */
public record StalenessConfig(long maxVersions) {
    public StalenessConfig {
        if (maxVersions < 0) {
            throw new IllegalArgumentException("max_versions must be at least 0: " + maxVersions);
        }
    }

    /** Eight versions. */
    public static StalenessConfig defaults() {
        return new StalenessConfig(8);
    }
}
