package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.aboveOne;
import static dev.millrace.learner.objective.Bounds.atLeastZero;

import dev.millrace.corrections.objective.BypassMode;
import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * verl's bypass mode with PPO's clip: the trust region is around the behavior policy, rejection is decided from current
 * over behavior at every update, and the loss is divided by what there was before it.
 *
 * @param clipLow            the ratio moves freely down to {@code 1 - clip_low}
 * @param clipHigh           and up to {@code 1 + clip_high}
 * @param dualClip           largest ratio that counts against a token with negative advantage; above 1
 * @param rolloutRs          comma-separated rejections, such as {@code seq_mean_k3}; empty for none
 * @param rolloutRsThreshold one bound for all of them, or one for each; empty without rejections
 * @param aggregation        how token losses become one number
 */
public record BypassPpoClipConfig(
        double clipLow,
        double clipHigh,
        double dualClip,
        String rolloutRs,
        String rolloutRsThreshold,
        AggregationConfig aggregation)
        implements ObjectiveConfig {
    public BypassPpoClipConfig {
        atLeastZero("clip_low", clipLow);
        atLeastZero("clip_high", clipHigh);
        aboveOne("dual_clip", dualClip);
        correction(rolloutRs, rolloutRsThreshold);
    }

    public static BypassPpoClipConfig defaults() {
        return new BypassPpoClipConfig(0.2, 0.2, 3, "", "", new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new BypassMode(
                correction(rolloutRs, rolloutRsThreshold),
                new ClipRange(clipLow, clipHigh),
                dualClip,
                aggregation.over(facts.beforeRejection()));
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }

    /** The rejections, in the corrections' types; refused in the corrections' words if they are none. */
    private static RolloutCorrectionConfig correction(String rolloutRs, String rolloutRsThreshold) {
        return VerlOptions.bypass("", "", rolloutRs, rolloutRsThreshold, "ppo_clip");
    }
}
