package dev.millrace.corrections.ratio;

import dev.millrace.corrections.stage.MaskStage;

/**
 * What becomes of a rollout whose old log-probs cannot be had, those of the learner's engine at the version that sampled.
 *
 * <p>The scorer makes them from the stored version, whether that is the current one or not, under every policy; this is about
 * a version that is stored no more, or cannot be read. Other weights, such as the current ones, never stand in for it: in
 * arrays the log-probs are NaN, so that a ratio formed with them stops whoever forms it.
 */
public enum MissingOldLogProbs {
    /**
     * There is no recovery but the scorer's: the rollout leaves as {@code version-unavailable}. What staleness.max_versions
     * lets be trained on is kept for it, see weights.keep_versions.
     */
    RECOMPUTE,
    /**
     * It goes on without. Its proximal log-probs, for the step, are A-3PO's: between behavior and the step's starting weights
     * in log space, {@code behavior + (d - 1)/d (current - behavior)} for a token sampled d versions before them. Nothing may
     * compare old log-probs then.
     */
    INTERPOLATE,
    /** It goes on as a sibling: its reward counts in its group's baseline, and no token of it is trained on. */
    MASK;

    /** Whether a rollout goes on without them. */
    public boolean goesOn() {
        return this != RECOMPUTE;
    }

    /**
     * The stage that masks them, or, where they go on interpolated, counts them. Where rollouts do not go on without, but one
     * has, under an earlier configuration, it is masked.
     */
    public MaskStage stage() {
        return new WithoutOldLogProbs(this);
    }
}
