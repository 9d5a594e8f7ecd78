package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import dev.millrace.corrections.rollout.WeightRule;

/**
 * verl's bypass mode with the policy gradient, {@code ℓ = −sg[w] A log π}: weights and rejection are made from current over behavior at every
 * update, and the loss is divided by the token count before the rejection. See {@link BypassMode}.
 *
 * <p>Source: verl {@code bypass_mode}. Unit of correction: that of the weights. With {@code token} and a band {@code lower_upper} this is the
 * double-sided mask (DIS) of SAO (arXiv 2607.07508, abstract only).
 *
 * @param rolloutIs weights per {@code token} or {@code sequence}; empty for none
 * @param rolloutIsThreshold {@code upper} truncates weights, {@code lower_upper} zeroes those outside
 * @param rolloutIsBatchNormalize divide weights by their minibatch mean
 * @param rolloutRs comma-separated rejections, such as {@code seq_mean_k3}; empty for none
 * @param rolloutRsThreshold one bound for all, or one each, comma-separated
 */
public record BypassReinforce(
        String rolloutIs,
        String rolloutIsThreshold,
        boolean rolloutIsBatchNormalize,
        String rolloutRs,
        String rolloutRsThreshold)
        implements BehaviorObjective {
    public BypassReinforce {
        correction(rolloutIs, rolloutIsThreshold, rolloutIsBatchNormalize, rolloutRs, rolloutRsThreshold);
    }

    public static BypassReinforce defaults() {
        return new BypassReinforce("sequence", "2.0", false, "", "");
    }

    @Override
    public CorrectionUnit unit() {
        return correction().weights().map(WeightRule::level).orElse(WeightRule.Level.TOKEN) == WeightRule.Level.SEQUENCE
                ? CorrectionUnit.SEQUENCE
                : CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new BypassMode(correction(), PpoClip.defaults()).evaluate(input, facts);
    }

    private RolloutCorrectionConfig correction() {
        return correction(rolloutIs, rolloutIsThreshold, rolloutIsBatchNormalize, rolloutRs, rolloutRsThreshold);
    }

    /** Weights and rejections, typed; refused in their own words if they are none. */
    private static RolloutCorrectionConfig correction(
            String rolloutIs,
            String rolloutIsThreshold,
            boolean rolloutIsBatchNormalize,
            String rolloutRs,
            String rolloutRsThreshold) {
        return new RolloutCorrectionSettings(
                        rolloutIs.isEmpty() ? null : rolloutIs,
                        rolloutIsThreshold.isEmpty() ? null : rolloutIsThreshold,
                        rolloutIsBatchNormalize,
                        rolloutRs.isEmpty() ? null : rolloutRs,
                        rolloutRsThreshold.isEmpty() ? null : rolloutRsThreshold,
                        true,
                        "reinforce")
                .resolve();
    }
}
