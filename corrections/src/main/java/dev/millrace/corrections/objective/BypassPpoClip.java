package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.aboveOne;
import static dev.millrace.corrections.objective.Bounds.atLeastZero;

import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;

/**
 * verl's bypass mode with PPO's clip: {@code ℓ = max(−A r, −A clip(r, 1−ε_low, 1+ε_high))} with r current over behavior. Rejection is decided from current
 * over behavior at every update, and the loss is divided by what there was before it. See {@link BypassMode}.
 *
 * <p>Unit of correction: token. Source: verl {@code bypass_mode}.
 *
 * @param clipRatioLow lower clip: ratio {@code 1 - clip_ratio_low}
 * @param clipRatioHigh upper clip: ratio {@code 1 + clip_ratio_high}
 * @param clipRatioC largest ratio at a negative advantage, above 1
 * @param rolloutRs comma-separated rejections, such as {@code seq_mean_k3}; empty for none
 * @param rolloutRsThreshold one bound for all, or one each, comma-separated
 */
public record BypassPpoClip(
        double clipRatioLow, double clipRatioHigh, double clipRatioC, String rolloutRs, String rolloutRsThreshold)
        implements BehaviorObjective {
    public BypassPpoClip {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
        aboveOne("clip_ratio_c", clipRatioC);
        correction(rolloutRs, rolloutRsThreshold);
    }

    public static BypassPpoClip defaults() {
        return new BypassPpoClip(0.2, 0.2, PpoClip.DEFAULT_CLIP_RATIO_C, "", "");
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new BypassMode(
                        correction(rolloutRs, rolloutRsThreshold),
                        new PpoClip(Anchor.BEHAVIOR, clipRatioLow, clipRatioHigh, clipRatioC))
                .evaluate(input, facts);
    }

    /** The rejections, typed; refused in their own words if they are none. */
    private static RolloutCorrectionConfig correction(String rolloutRs, String rolloutRsThreshold) {
        return new RolloutCorrectionSettings(
                        null,
                        null,
                        false,
                        rolloutRs.isEmpty() ? null : rolloutRs,
                        rolloutRsThreshold.isEmpty() ? null : rolloutRsThreshold,
                        true,
                        "ppo_clip")
                .resolve();
    }
}
