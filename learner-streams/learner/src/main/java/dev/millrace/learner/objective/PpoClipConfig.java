package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.aboveOne;
import static dev.millrace.learner.objective.Bounds.atLeastZero;

import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * PPO's clipped surrogate with the dual clip.
 *
 * @param anchor      the policy that the trust region is around
 * @param clipLow     the ratio moves freely down to {@code 1 - clip_low}
 * @param clipHigh    and up to {@code 1 + clip_high}
 * @param dualClip    largest ratio that counts against a token with negative advantage; above 1
 * @param aggregation how token losses become one number
 */
public record PpoClipConfig(
        Anchor anchor, double clipLow, double clipHigh, double dualClip, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public PpoClipConfig {
        atLeastZero("clip_low", clipLow);
        atLeastZero("clip_high", clipHigh);
        aboveOne("dual_clip", dualClip);
    }

    public static PpoClipConfig defaults() {
        return new PpoClipConfig(Anchor.OLD, 0.2, 0.2, 3, new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new PpoClip(new ClipRange(clipLow, clipHigh), dualClip, aggregation.over(GlobalBatch.WHOLE));
    }
}
