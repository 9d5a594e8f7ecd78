package dev.millrace.corrections.rollout;

import java.util.List;
import java.util.Optional;

/**
 * What one rollout correction does: which weights, which rejections, and under which mode the objective uses them.
 *
 * <p>Made from verl's settings by {@link RolloutCorrectionSettings#resolve}, from a preset, or directly.
 *
 * @param weights how importance weights are made; empty: none are, and every trained token counts once
 * @param batchNormalize whether weights are divided by their mean over the batch; needs weights
 * @param rejections every rule a token must pass to stay trained; empty: none is rejected
 * @param mode decoupled or bypass
 * @param semantics whose reading of the metrics
 */
public record RolloutCorrectionConfig(
        Optional<WeightRule> weights,
        boolean batchNormalize,
        List<RejectionRule> rejections,
        ObjectiveMode mode,
        Semantics semantics) {

    public RolloutCorrectionConfig {
        rejections = List.copyOf(rejections);
    }

    /** Which policies the objective keeps apart, and, in bypass, which loss it is. */
    public enum ObjectiveMode {
        /** Behavior, old or proximal, and current: weights correct for the first gap, clipping bounds the second. */
        DECOUPLED,
        /** old := behavior, and the clipped ratio itself is the correction; weights are not applied. */
        BYPASS_PPO_CLIP,
        /** old := behavior, and explicit weights current/behavior multiply a REINFORCE loss. */
        BYPASS_REINFORCE
    }
}
