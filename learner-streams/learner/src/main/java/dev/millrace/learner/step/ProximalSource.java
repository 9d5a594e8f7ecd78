package dev.millrace.learner.step;

import dev.millrace.stages.MissingOldLogProbs;

/**
 * Where a step's proximal log-probs come from. Everything but {@link #RECORDED} has the batch's corrections decided anew,
 * by the same classes under the same configuration as the topology's, at the version that the step really starts from.
 */
public enum ProximalSource {
    /**
     * The trajectories': the scorer's, at the version that was newest when it scored. What a batch ages in a queue after that
     * is in no ratio.
     */
    RECORDED,
    /**
     * The step's starting weights': a forward pass over the members that were scored under another version, or over all of
     * them where the objective needs the current log-probs anyway. Importance weights, masks, effective sample size and
     * second moment then are about the batch as it is trained on.
     */
    RECOMPUTED,
    /**
     * A-3PO's: between behavior and the step's starting weights in log space, by each token's age. It makes a trust region
     * around a policy in between; here it costs the same forward pass as {@link #RECOMPUTED}.
     */
    INTERPOLATED,
    /** Bypass: proximal and old are behavior, and the objective corrects for everything by itself. */
    BEHAVIOR;

    /**
     * Refuses what cannot go together: a member without old log-probs is interpolated by the step, between behavior and the
     * step's own log-probs, and a step that trusts the batch has none.
     */
    public void requireFits(MissingOldLogProbs missing) {
        if (this == RECORDED && missing == MissingOldLogProbs.INTERPOLATE) {
            throw new IllegalArgumentException(
                    "learner.step.proximal is recorded and topology.corrections.missing_old_log_probs is"
                            + " interpolate; the step interpolates between behavior and its own log-probs, which it does not make then: choose"
                            + " learner.step.proximal=recomputed, or missing_old_log_probs=mask");
        }
    }
}
