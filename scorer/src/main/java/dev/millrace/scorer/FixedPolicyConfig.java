package dev.millrace.scorer;

/**
 * A fixed policy: a version of the run, a decoder on disk, or none.
 *
 * @param version version of the run, which the log must still hold; -1 for none
 * @param directory Hugging Face directory with the run's vocabulary; empty for none
 */
public record FixedPolicyConfig(long version, String directory) {
    public FixedPolicyConfig {
        if (version < -1) {
            throw new IllegalArgumentException("version must be at least 0, or -1 for none: " + version);
        }
        if (version >= 0 && !directory.isEmpty()) {
            throw new IllegalArgumentException("version must not be set with directory='" + directory
                    + "', since a policy is one of the two; leave one of them out: " + version);
        }
    }

    public static FixedPolicyConfig defaults() {
        return new FixedPolicyConfig(-1, "");
    }

    public boolean isGiven() {
        return version >= 0 || !directory.isEmpty();
    }
}
