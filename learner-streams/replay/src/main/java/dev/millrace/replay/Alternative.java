package dev.millrace.replay;

import dev.millrace.stages.CorrectionConfig;

/**
 * Corrections that a run is asked about.
 *
 * @param name for people
 * @param corrections all of them
 * @param isRescored whether they see log-probs that were computed again, rather than the recorded ones
 */
public record Alternative(String name, CorrectionConfig corrections, boolean isRescored) {

    /** Over the recorded log-probs. */
    public Alternative(String name, CorrectionConfig corrections) {
        this(name, corrections, false);
    }
}
