package dev.millrace.corrections.kl;

/** Whether and where the divergence from a reference policy counts. */
public sealed interface KlConfig {

    /** Nowhere. */
    record Off() implements KlConfig {}

    /**
     * In the loss: {@code loss + coefficient · KL}, aggregated as the policy loss is, with the estimator of least variance
     * for tokens that the behavior policy sampled.
     *
     * @param divergence  which of the two divergences
     * @param coefficient how much it counts
     * @param reference   where the reference's log-probs come from
     */
    record InLoss(KlDivergence divergence, CoefficientConfig coefficient, ReferenceConfig reference)
            implements KlConfig {
        public static InLoss defaults() {
            return new InLoss(KlDivergence.REVERSE, CoefficientConfig.Fixed.defaults(), ReferenceConfig.defaults());
        }
    }

    /**
     * In the reward: a sequence's reward less {@code coefficient · Σ (log proximal − log reference)} over its trained
     * tokens, from which the group's advantages are taken anew.
     *
     * @param coefficient how much it counts
     * @param reference   where the reference's log-probs come from
     */
    record InReward(CoefficientConfig coefficient, ReferenceConfig reference) implements KlConfig {
        public static InReward defaults() {
            return new InReward(CoefficientConfig.Fixed.defaults(), ReferenceConfig.defaults());
        }
    }
}
