package dev.millrace.audit.doctor;

import dev.millrace.log.Evaluations;

/**
 * What is known of a run's versions on held-out prompts.
 *
 * @param evaluations those that can be compared
 * @param isBestKept whether the best one's weights are still there; true without one
 */
public record HeldOut(Evaluations evaluations, boolean isBestKept) {
    /** Nothing was evaluated. */
    public static final HeldOut NONE = new HeldOut(Evaluations.NONE, true);
}
