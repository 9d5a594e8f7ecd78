package dev.millrace.replay;

import dev.millrace.corrections.algorithm.Algorithm;

/**
 * An alternative algorithm for a run.
 *
 * @param isRescored sees recomputed log-probs
 * @param isRewarded sees another verifier's rewards
 */
public record Alternative(String name, Algorithm algorithm, boolean isRescored, boolean isRewarded) {

    /** With recorded rewards. */
    public Alternative(String name, Algorithm algorithm, boolean isRescored) {
        this(name, algorithm, isRescored, false);
    }

    /** With recorded log-probs and rewards. */
    public Alternative(String name, Algorithm algorithm) {
        this(name, algorithm, false, false);
    }
}
