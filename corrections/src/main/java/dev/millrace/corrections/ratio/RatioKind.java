package dev.millrace.corrections.ratio;

/**
 * Which two policies a probability ratio compares, target over sampler.
 *
 * <p>{@code FULL = ENGINE_MISMATCH * STALENESS * TRUST_REGION}, and {@code ANCHOR = ENGINE_MISMATCH * STALENESS}.
 * A correction names the one it acts on, so that a mismatch between engines is not mistaken for a policy that moved.
 */
public enum RatioKind {
    /** old / behavior: one version of the weights, learner's engine against inference engine. */
    ENGINE_MISMATCH("old", "behavior"),
    /** proximal / old: the learner's engine at two versions, when the batch is formed and when it was sampled. */
    STALENESS("proximal", "old"),
    /** proximal / behavior: mismatch and staleness together, where no log-probs of the sampling version exist. */
    ANCHOR("proximal", "behavior"),
    /** current / proximal: how far the update has moved; what clipping bounds. */
    TRUST_REGION("current", "proximal"),
    /** current / behavior: everything between the sampled token and the gradient. */
    FULL("current", "behavior");

    private final String target;
    private final String sampler;

    RatioKind(String target, String sampler) {
        this.target = target;
        this.sampler = sampler;
    }

    /** Name of the policy in the numerator. */
    public String target() {
        return target;
    }

    /** Name of the policy in the denominator. */
    public String sampler() {
        return sampler;
    }
}
