package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.atLeastZero;

import dev.millrace.corrections.objective.Cispo;
import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * CISPO: the ratio is clipped as a weight, so every token keeps a gradient.
 *
 * @param anchor      the policy that the ratio is taken to
 * @param clipLow     the weight is at least {@code 1 - clip_low}; 1 for no such bound
 * @param clipHigh    and at most {@code 1 + clip_high}
 * @param aggregation how token losses become one number
 */
public record CispoConfig(Anchor anchor, double clipLow, double clipHigh, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public CispoConfig {
        atLeastZero("clip_low", clipLow);
        atLeastZero("clip_high", clipHigh);
    }

    public static CispoConfig defaults() {
        return new CispoConfig(Anchor.PROXIMAL, 1, 0.2, new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new Cispo(new ClipRange(clipLow, clipHigh), aggregation.over(GlobalBatch.WHOLE));
    }
}
