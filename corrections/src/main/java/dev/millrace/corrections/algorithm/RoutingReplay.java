package dev.millrace.corrections.algorithm;

/**
 * Experts of a rollout's tokens while these are scored and trained on, for a mixture of experts. A router's choice is
 * not continuous: if two engines, or the weights before and after an update, choose differently, log-probs of the same
 * token differ by far more than their logits, and no importance weight corrects that.
 */
public enum RoutingReplay {
    /** The router of each pass chooses. */
    NONE,
    /**
     * The choices of the learner's router at the start of the step, in every update (R2): the policies that the updates
     * compare differ by their weights and not by their choices. Needs more than one update per step to have an effect.
     */
    LEARNER,
    /**
     * The choices of the generator's router when sampling (R3), recorded in rollouts: scorer and learner compute the
     * function that the tokens were sampled from.
     */
    GENERATOR
}
