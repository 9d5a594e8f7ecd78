package dev.millrace.corrections.kl;

/** Where the log-probs that a divergence is measured against come from. */
public sealed interface ReferenceConfig {

    static ReferenceConfig defaults() {
        return new Recorded();
    }

    /** From the trajectories, into which they were joined; one without is refused. */
    record Recorded() implements ReferenceConfig {}

    /**
     * From a forward pass of the learner under a version of the run, whose weights it keeps.
     *
     * @param version version; 0 is the initial weights
     */
    record Version(long version) implements ReferenceConfig {
        public Version {
            if (version < 0) {
                throw new IllegalArgumentException("version must be at least 0: " + version);
            }
        }

        public static Version defaults() {
            return new Version(0);
        }
    }

    /** From the learner as the step starts; for {@code kl.kind=centred}. */
    record Learner() implements ReferenceConfig {}
}
