package dev.millrace.corrections.ratio;

import dev.millrace.corrections.stage.MaskStage;

/**
 * What happens to a rollout without old log-probs, those of the learner's engine at the version that sampled.
 *
 * <p>Under every policy the scorer computes them from the stored version, current or not. The policy applies when that
 * version is no longer stored or cannot be read. Other weights, such as the current ones, never replace it: in arrays
 * the log-probs are NaN, so that any computation that forms a ratio with them fails.
 */
public enum MissingOldLogProbs {
    /**
     * The scorer is the only way to recover them: the rollout is dropped as {@code version-unavailable}. The versions
     * that staleness.max_versions allows in training are kept for it, see weights.keep_versions.
     */
    RECOMPUTE,
    /**
     * The rollout continues without them. Its proximal log-probs for the step are A-3PO's: between behavior and the
     * step's starting weights in log space, {@code behavior + (d - 1)/d (current - behavior)} for a token sampled d
     * versions before them. The algorithm must not compare old log-probs then.
     */
    INTERPOLATE,
    /**
     * The rollout continues as a sibling: its reward counts in its group's baseline, but its tokens are masked.
     */
    MASK;

    /** Returns whether a rollout continues without them. */
    public boolean goesOn() {
        return this != RECOMPUTE;
    }

    /**
     * Returns the stage that masks such rollouts, or counts them where they continue interpolated. A rollout that
     * continued under an earlier configuration, although this one does not allow it, is masked.
     */
    public MaskStage stage() {
        return new WithoutOldLogProbs(this);
    }
}
