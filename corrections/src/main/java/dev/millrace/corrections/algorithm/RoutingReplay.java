package dev.millrace.corrections.algorithm;

/**
 * Through which experts the tokens of a rollout go while they are scored and trained on, of a mixture of experts. A router's choice is not
 * continuous: where two engines, or the weights before and after an update, choose otherwise, log-probs of the same token differ by far
 * more than their logits do, and no importance weight mends that.
 */
public enum RoutingReplay {
    /** Each pass's router chooses. */
    NONE,
    /**
     * Those that the learner's router chose at the start of the step, in every update of it (R2): the policies that the updates compare
     * differ by their weights and not by their choices. Of no effect in a step with one update, so more are needed.
     */
    LEARNER,
    /**
     * Those that the generator's router chose when it sampled (R3), which rollouts then carry: scorer and learner compute the function that
     * the tokens were sampled from.
     */
    GENERATOR
}
