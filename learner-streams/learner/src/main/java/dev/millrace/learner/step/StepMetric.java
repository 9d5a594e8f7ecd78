package dev.millrace.learner.step;

/**
 * A number that a step says of itself, by the name that the training log has; what an objective adds of its own has the objective's
 * names. Of a name that begins with {@code recorded.}, the rest says which number the batch had recorded.
 */
public enum StepMetric {
    LOSS("loss", "", "objective's loss - entropy bonus + KL term"),
    POLICY_LOSS("policy_loss", "", "the objective's part of the loss"),
    ENTROPY("entropy", "nats", "mean token entropy before the update"),
    ENTROPY_COEFFICIENT("entropy_coefficient", "", "coefficient of the entropy bonus"),
    APPROX_KL_BEHAVIOR("approx_kl_behavior", "nats", "k1 between behavior and current"),
    APPROX_KL2_BEHAVIOR(
            "approx_kl2_behavior", "nats", "k2 between behavior and current: half the mean squared log ratio"),
    APPROX_KL3_BEHAVIOR("approx_kl3_behavior", "nats", "k3 between behavior and current"),
    APPROX_KL_PROXIMAL("approx_kl_proximal", "nats", "k1 between proximal and current"),
    CLIP_FRACTION("clip_fraction", "share", "tokens whose ratio the objective clipped"),
    CLIP_FRACTION_LOWER("clip_fraction_lower", "share", "tokens that dual clipping bounded"),
    KL_LOSS("kl.loss", "nats", "KL to the reference in the loss"),
    VALUE_LOSS("value_loss", "", "the critic's part of the loss, without its coefficient"),
    VALUE_CLIP_FRACTION("value_clip_fraction", "share", "tokens whose value the critic's loss clipped"),
    EXPLAINED_VARIANCE(
            "explained_variance",
            "share",
            "share of the returns' variance that the critic's values explain at the start of the step"),
    GRAD_NORM("grad_norm", "", "L2 norm of the gradient before clipping"),
    GRAD_CLIPPED("grad_clipped", "share", "updates whose gradient was clipped"),
    PROXIMAL_SEQUENCES_INTERPOLATED(
            "proximal.sequences_interpolated", "sequences", "sequences with interpolated proximal log-probs"),
    PROXIMAL_SEQUENCES_RECOMPUTED(
            "proximal.sequences_recomputed", "sequences", "sequences with recomputed proximal log-probs"),
    RECORDED_ESS_RATIO("recorded.ess_ratio", "share", "ESS ratio as recorded"),
    RECORDED_ESS_RATIO_TRUNCATED("recorded.ess_ratio_truncated", "share", "the same of truncated weights"),
    RECORDED_SECOND_MOMENT("recorded.second_moment", "", "second moment as recorded"),
    RECORDED_STEP_SCALE("recorded.step_scale", "", "factor on the step as recorded"),
    RECORDED_TOKENS_TRAINED("recorded.tokens_trained", "tokens", "trained tokens as recorded"),
    STEP_SCALE("step_scale", "", "factor on the step, in force"),
    KL_MEASURED("kl.measured", "nats", "KL to the reference, measured"),
    KL_REFERENCE_LOG_PROB("kl.reference_log_prob", "nats", "mean log-prob of trained tokens under the reference"),
    KL_COEFFICIENT("kl.coefficient", "", "coefficient of the KL to the reference"),
    KL_PENALTY_MEAN("kl.penalty_mean", "", "mean penalty in the rewards"),
    GRADIENT_POWER(
            "gradient_power", "", "mean squared logit gradient norm per sequence, weighed; absent without weights"),
    GRADIENT_POWER_UNWEIGHTED("gradient_power_unweighted", "", "the same with weight 1"),
    CLIP_RATIO_HIGH("clip_ratio_high", "", "upper clip of the objective; absent without one"),
    STALENESS_P50("staleness_p50", "versions", "median staleness of trained tokens"),
    STALENESS_P90("staleness_p90", "versions", "90th percentile"),
    STALENESS_P99("staleness_p99", "versions", "99th percentile"),
    RESPONSE_TOKENS_MEAN("response_tokens_mean", "tokens", "mean response length, masked members included"),
    RESPONSE_TOKENS_MAX("response_tokens_max", "tokens", "longest response"),
    LENGTH_GUARD_TOKENS("length_guard.tokens", "tokens", "mean response length of the length guard"),
    LENGTH_GUARD_TOKENS_BEFORE(
            "length_guard.tokens_before", "tokens", "the same at the compared earlier step; absent before it"),
    LENGTH_GUARD_REMEMBERED("length_guard.remembered", "steps", "steps in the length guard's window"),
    LENGTH_GUARD_SCALE("length_guard.scale", "", "step factor of the length guard"),
    FORWARD_PASSES("forward_passes", "passes", "separate forward passes"),
    UPDATES("updates", "updates", "weight updates in the step"),
    OPTIMIZER_STEPS("optimizer_steps", "updates", "optimiser updates of the run"),
    VERSIONS_BEHIND_ASSEMBLY("versions_behind_assembly", "versions", "versions between assembly and step"),
    LAG_SECONDS("lag_seconds", "seconds", "mean time from rollout end to step start, by two machines' clocks"),
    SECONDS_IDLE("seconds_idle", "seconds", "wait for the batch"),
    SECONDS_FETCH("seconds_fetch", "seconds", "fetch of the trajectories"),
    SECONDS_PREVIOUS_COMMIT("seconds_previous_commit", "seconds", "wait for the commit of the previous step"),
    SECONDS_FORWARD("seconds_forward", "seconds", "separate forward passes"),
    SECONDS_GRADIENT("seconds_gradient", "seconds", "gradients"),
    SECONDS_GRADIENT_NORMS("seconds_gradient_norms", "seconds", "gradient norms of sequences"),
    SECONDS_OPTIMIZER("seconds_optimizer", "seconds", "optimiser");

    private final String key;
    private final String unit;
    private final String meaning;

    StepMetric(String key, String unit, String meaning) {
        this.key = key;
        this.unit = unit;
        this.meaning = meaning;
    }

    public String key() {
        return key;
    }

    /** What it counts in; empty if it is a bare number. */
    public String unit() {
        return unit;
    }

    public String meaning() {
        return meaning;
    }
}
