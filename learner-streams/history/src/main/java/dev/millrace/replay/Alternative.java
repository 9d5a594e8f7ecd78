package dev.millrace.replay;

import dev.millrace.corrections.algorithm.Algorithm;

/**
 * An algorithm that a run is asked about.
 *
 * @param name for people
 * @param algorithm what is decided by
 * @param isRescored whether they see log-probs that were computed again, rather than the recorded ones
 * @param isRewarded whether they see rewards of another verifier, rather than the recorded ones
 */
public record Alternative(String name, Algorithm algorithm, boolean isRescored, boolean isRewarded) {

    /** Over the recorded rewards. */
    public Alternative(String name, Algorithm algorithm, boolean isRescored) {
        this(name, algorithm, isRescored, false);
    }

    /** Over the recorded log-probs and rewards. */
    public Alternative(String name, Algorithm algorithm) {
        this(name, algorithm, false, false);
    }
}
