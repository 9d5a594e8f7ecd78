package dev.millrace.learner.step;

/** A number that a step says of itself; what an objective adds of its own has the objective's names. */
public enum StepMetric {
    /** The loss: the objective's, less the entropy bonus, with the KL term. */
    LOSS("loss"),
    /** The objective's part of it. */
    POLICY_LOSS("policy_loss"),
    /** Mean token entropy of the policy before the update. */
    ENTROPY("entropy"),
    /** What the entropy bonus was multiplied with. */
    ENTROPY_COEFFICIENT("entropy_coefficient"),
    /** k1 between behavior and current. */
    APPROX_KL_BEHAVIOR("approx_kl_behavior"),
    /** k3 between behavior and current. */
    APPROX_KL3_BEHAVIOR("approx_kl3_behavior"),
    /** KL to the reference in the loss. */
    KL_LOSS("kl.loss"),
    /** L2 norm of the gradient before clipping. */
    GRAD_NORM("grad_norm"),
    /** Share of the updates whose gradient was clipped. */
    GRAD_CLIPPED("grad_clipped"),
    /** Sequences whose proximal log-probs were interpolated. */
    PROXIMAL_SEQUENCES_INTERPOLATED("proximal.sequences_interpolated"),
    /** Sequences whose proximal log-probs were computed again. */
    PROXIMAL_SEQUENCES_RECOMPUTED("proximal.sequences_recomputed"),
    /** ESS ratio as the batch recorded it. */
    RECORDED_ESS_RATIO("recorded.ess_ratio"),
    /** The same of truncated weights. */
    RECORDED_ESS_RATIO_TRUNCATED("recorded.ess_ratio_truncated"),
    /** Second moment as recorded. */
    RECORDED_SECOND_MOMENT("recorded.second_moment"),
    /** Factor on the step as recorded. */
    RECORDED_STEP_SCALE("recorded.step_scale"),
    /** Trained tokens as recorded. */
    RECORDED_TOKENS_TRAINED("recorded.tokens_trained"),
    /** Factor on the step, in force. */
    STEP_SCALE("step_scale"),
    /** KL to the reference, measured. */
    KL_MEASURED("kl.measured"),
    /** Mean log-prob of the trained tokens under the reference: how likely the policy's text is there. */
    KL_REFERENCE_LOG_PROB("kl.reference_log_prob"),
    /** Its coefficient. */
    KL_COEFFICIENT("kl.coefficient"),
    /** Mean penalty in the rewards. */
    KL_PENALTY_MEAN("kl.penalty_mean"),
    /** Mean squared norm of a sequence's gradient in logit space, under the weights in force; absent where nothing is weighed. */
    GRADIENT_POWER("gradient_power"),
    /** The same with every weight 1. */
    GRADIENT_POWER_UNWEIGHTED("gradient_power_unweighted"),
    /** How far above 1 the objective lets a ratio go; absent where it bounds none. */
    CLIP_RATIO_HIGH("clip_ratio_high"),
    /** Mean response length of the batch, masked members included. */
    RESPONSE_TOKENS_MEAN("response_tokens_mean"),
    /** The same, as the length guard saw it. */
    LENGTH_GUARD_TOKENS("length_guard.tokens"),
    /** What it was as many steps ago as the length guard looks back; absent while there are not so many. */
    LENGTH_GUARD_TOKENS_BEFORE("length_guard.tokens_before"),
    /** How many steps the length guard remembers. */
    LENGTH_GUARD_REMEMBERED("length_guard.remembered"),
    /** Factor that the length guard put on the step. */
    LENGTH_GUARD_SCALE("length_guard.scale"),
    /** Forward passes of their own. */
    FORWARD_PASSES("forward_passes"),
    /** Time in these, seconds. */
    SECONDS_FORWARD("seconds_forward"),
    /** Time in gradients, seconds. */
    SECONDS_GRADIENT("seconds_gradient"),
    /** Time in gradient norms of sequences, seconds. */
    SECONDS_GRADIENT_NORMS("seconds_gradient_norms"),
    /** Time in the optimiser, seconds. */
    SECONDS_OPTIMIZER("seconds_optimizer");

    private final String key;

    StepMetric(String key) {
        this.key = key;
    }

    /** Its name in the training log. */
    public String key() {
        return key;
    }
}
