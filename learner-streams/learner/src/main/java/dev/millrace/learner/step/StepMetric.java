package dev.millrace.learner.step;

/**
 * A number that a step says of itself, by the name that the training log has; what an objective adds of its own has the objective's
 * names. Of a name that begins with {@code recorded.}, the rest says which number the batch had recorded.
 */
public enum StepMetric {
    LOSS("loss", "", "loss: the objective's, less the entropy bonus, with the KL term"),
    POLICY_LOSS("policy_loss", "", "the objective's part of the loss"),
    ENTROPY("entropy", "nats", "mean entropy of the policy's tokens before the update"),
    ENTROPY_COEFFICIENT("entropy_coefficient", "", "what the entropy bonus was multiplied with"),
    APPROX_KL_BEHAVIOR("approx_kl_behavior", "nats", "k1 between behavior and current"),
    APPROX_KL3_BEHAVIOR("approx_kl3_behavior", "nats", "k3 between behavior and current"),
    APPROX_KL_PROXIMAL("approx_kl_proximal", "nats", "k1 between proximal and current"),
    CLIP_FRACTION("clip_fraction", "share", "tokens whose ratio the objective clipped"),
    CLIP_FRACTION_LOWER("clip_fraction_lower", "share", "tokens that dual clipping bounded"),
    KL_LOSS("kl.loss", "nats", "KL to the reference in the loss"),
    GRAD_NORM("grad_norm", "", "L2 norm of the gradient before clipping"),
    GRAD_CLIPPED("grad_clipped", "share", "updates whose gradient was clipped"),
    PROXIMAL_SEQUENCES_INTERPOLATED(
            "proximal.sequences_interpolated", "sequences", "sequences whose proximal log-probs were interpolated"),
    PROXIMAL_SEQUENCES_RECOMPUTED(
            "proximal.sequences_recomputed", "sequences", "sequences whose proximal log-probs were computed again"),
    RECORDED_ESS_RATIO("recorded.ess_ratio", "share", "ESS ratio as the batch recorded it"),
    RECORDED_ESS_RATIO_TRUNCATED("recorded.ess_ratio_truncated", "share", "the same of truncated weights"),
    RECORDED_SECOND_MOMENT("recorded.second_moment", "", "second moment as recorded"),
    RECORDED_STEP_SCALE("recorded.step_scale", "", "factor on the step as recorded"),
    RECORDED_TOKENS_TRAINED("recorded.tokens_trained", "tokens", "trained tokens as recorded"),
    STEP_SCALE("step_scale", "", "factor on the step, in force"),
    KL_MEASURED("kl.measured", "nats", "KL to the reference, measured"),
    KL_REFERENCE_LOG_PROB(
            "kl.reference_log_prob",
            "nats",
            "mean log-prob of the trained tokens under the reference: how likely the policy's text is there"),
    KL_COEFFICIENT("kl.coefficient", "", "what KL to the reference is multiplied with"),
    KL_PENALTY_MEAN("kl.penalty_mean", "", "mean penalty in the rewards"),
    GRADIENT_POWER(
            "gradient_power",
            "",
            "mean squared norm of a sequence's gradient in logit space, under the weights in force; absent where nothing is weighed"),
    GRADIENT_POWER_UNWEIGHTED("gradient_power_unweighted", "", "the same with every weight 1"),
    CLIP_RATIO_HIGH(
            "clip_ratio_high", "", "how far above 1 the objective lets a ratio go; absent where it bounds none"),
    STALENESS_P50("staleness_p50", "versions", "half of the tokens trained on are no staler"),
    STALENESS_P90("staleness_p90", "versions", "nine tenths of the tokens trained on are no staler"),
    STALENESS_P99("staleness_p99", "versions", "99 of 100 tokens trained on are no staler"),
    RESPONSE_TOKENS_MEAN(
            "response_tokens_mean", "tokens", "mean response length of the batch, masked members included"),
    RESPONSE_TOKENS_MAX("response_tokens_max", "tokens", "the longest response of the batch"),
    LENGTH_GUARD_TOKENS("length_guard.tokens", "tokens", "mean response length as the length guard saw it"),
    LENGTH_GUARD_TOKENS_BEFORE(
            "length_guard.tokens_before",
            "tokens",
            "what it was as many steps ago as the length guard looks back; absent while there are not so many"),
    LENGTH_GUARD_REMEMBERED("length_guard.remembered", "steps", "how many steps the length guard remembers"),
    LENGTH_GUARD_SCALE("length_guard.scale", "", "factor that the length guard put on the step"),
    FORWARD_PASSES("forward_passes", "passes", "forward passes of their own"),
    UPDATES("updates", "updates", "updates of the weights within the step"),
    OPTIMIZER_STEPS("optimizer_steps", "updates", "updates of the optimiser since the run began"),
    VERSIONS_BEHIND_ASSEMBLY(
            "versions_behind_assembly",
            "versions",
            "versions that were made between the batch's assembly and the start of its step"),
    LAG_SECONDS(
            "lag_seconds",
            "seconds",
            "time between the end of a rollout and the start of the step on it, mean over the batch, by two machines' clocks"),
    SECONDS_IDLE("seconds_idle", "seconds", "time that the learner waited for the batch"),
    SECONDS_FETCH("seconds_fetch", "seconds", "time to fetch the batch's trajectories"),
    SECONDS_PREVIOUS_COMMIT("seconds_previous_commit", "seconds", "time that the step before took to be committed"),
    SECONDS_FORWARD("seconds_forward", "seconds", "time in forward passes of their own"),
    SECONDS_GRADIENT("seconds_gradient", "seconds", "time in gradients"),
    SECONDS_GRADIENT_NORMS("seconds_gradient_norms", "seconds", "time in gradient norms of sequences"),
    SECONDS_OPTIMIZER("seconds_optimizer", "seconds", "time in the optimiser");

    private final String key;
    private final String unit;
    private final String meaning;

    StepMetric(String key, String unit, String meaning) {
        this.key = key;
        this.unit = unit;
        this.meaning = meaning;
    }

    /** Its name in the training log. */
    public String key() {
        return key;
    }

    /** What it counts in; empty if it is a bare number. */
    public String unit() {
        return unit;
    }

    /** What it says, in words. */
    public String meaning() {
        return meaning;
    }
}
