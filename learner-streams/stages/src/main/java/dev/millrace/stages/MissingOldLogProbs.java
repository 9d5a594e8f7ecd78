package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;

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
     * compare old log-probs then, so compare must be {@code anchor}.
     */
    INTERPOLATE,
    /** It goes on as a sibling: its reward counts in its group's baseline, and no token of it is trained on. */
    MASK;

    /** Name of the stage that reports, and that such members are masked by. */
    public static final String STAGE = "missing_old_log_probs";

    /** Whether a rollout goes on without them. */
    public boolean goesOn() {
        return this != RECOMPUTE;
    }

    /**
     * The layout without the members that must not be trained on because they lack old log-probs; the same one if there are
     * none. Where rollouts do not go on without, but one has, under an earlier configuration, it is masked.
     *
     * @param withoutOld one per sequence
     */
    public TokenBatch trainable(TokenBatch tokens, boolean[] withoutOld) {
        return this == INTERPOLATE ? tokens : without(tokens, withoutOld);
    }

    /** The layout with the marked sequences masked; the same one if none is marked. */
    public static TokenBatch without(TokenBatch tokens, boolean[] marked) {
        byte[] mask = null;
        for (int s = 0; s < marked.length; s++) {
            if (marked[s]) {
                mask = mask == null ? tokens.mask() : mask;
                Arrays.fill(mask, tokens.start(s), tokens.end(s), (byte) 0);
            }
        }
        return mask == null ? tokens : tokens.withMask(mask);
    }
}
