package dev.millrace.learner.objective;

import dev.millrace.corrections.objective.BypassMode;
import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * verl's bypass mode with the policy gradient: weights and rejection are made from current over behavior at every
 * update, and the loss is divided by what there was before the rejection.
 *
 * @param rolloutIs          weights per {@code token} or per {@code sequence}; empty for none
 * @param rolloutIsThreshold {@code upper} truncates weights at it, {@code lower_upper} sets those outside to 0; empty
 *     without weights
 * @param rolloutRs          comma-separated rejections, such as {@code seq_mean_k3}; empty for none
 * @param rolloutRsThreshold one bound for all of them, or one for each; empty without rejections
 * @param aggregation        how token losses become one number
 */
public record BypassReinforceConfig(
        String rolloutIs,
        String rolloutIsThreshold,
        String rolloutRs,
        String rolloutRsThreshold,
        AggregationConfig aggregation)
        implements ObjectiveConfig {
    public BypassReinforceConfig {
        correction(rolloutIs, rolloutIsThreshold, rolloutRs, rolloutRsThreshold);
    }

    public static BypassReinforceConfig defaults() {
        return new BypassReinforceConfig("sequence", "2.0", "", "", new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new BypassMode(
                correction(rolloutIs, rolloutIsThreshold, rolloutRs, rolloutRsThreshold),
                ClipRange.symmetric(0),
                PpoClip.DEFAULT_DUAL_CLIP,
                aggregation.over(facts.beforeRejection()));
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }

    /** Weights and rejections, in the corrections' types; refused in the corrections' words if they are none. */
    private static RolloutCorrectionConfig correction(
            String rolloutIs, String rolloutIsThreshold, String rolloutRs, String rolloutRsThreshold) {
        return VerlOptions.bypass(rolloutIs, rolloutIsThreshold, rolloutRs, rolloutRsThreshold, "reinforce");
    }
}
