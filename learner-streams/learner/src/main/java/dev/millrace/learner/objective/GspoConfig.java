package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.aboveOne;
import static dev.millrace.learner.objective.Bounds.atLeastZero;

import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.SeqMeanTokenMean;

/**
 * GSPO: the clipped surrogate of the sequence's ratio, a geometric mean over its tokens.
 *
 * @param anchor      the policy that the trust region is around
 * @param clipLow     the sequence's ratio moves freely down to {@code 1 - clip_low}; far narrower than a token's
 * @param clipHigh    and up to {@code 1 + clip_high}
 * @param dualClip    largest ratio that counts against a sequence with negative advantage; above 1
 * @param aggregation how token losses become one number
 */
public record GspoConfig(Anchor anchor, double clipLow, double clipHigh, double dualClip, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public GspoConfig {
        atLeastZero("clip_low", clipLow);
        atLeastZero("clip_high", clipHigh);
        aboveOne("dual_clip", dualClip);
    }

    public static GspoConfig defaults() {
        return new GspoConfig(Anchor.PROXIMAL, 3e-4, 4e-4, 3, new SeqMeanTokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new Gspo(new ClipRange(clipLow, clipHigh), dualClip, aggregation.over(GlobalBatch.WHOLE));
    }
}
