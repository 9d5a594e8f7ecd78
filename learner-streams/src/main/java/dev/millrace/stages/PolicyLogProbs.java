package dev.millrace.stages;

import dev.millrace.corrections.ratio.LogRatio;

/**
 * The log-probs of one trajectory, or of a batch of them, one per packed token; not to be written to.
 *
 * @param behavior by the generator's engine at the version that sampled
 * @param old by the learner's engine at that version
 * @param proximal by the learner's engine at the newest version
 */
public record PolicyLogProbs(float[] behavior, float[] old, float[] proximal) {

    /** The comparison of two of them. */
    public LogRatio ratio(ComparedPolicies policies) {
        return switch (policies) {
            case ANCHOR -> LogRatio.of(policies.kind(), proximal, behavior);
            case ENGINE_MISMATCH -> LogRatio.of(policies.kind(), old, behavior);
            case STALENESS -> LogRatio.of(policies.kind(), proximal, old);
        };
    }
}
