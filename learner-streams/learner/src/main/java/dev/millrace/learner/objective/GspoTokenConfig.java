package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.atLeastZero;

import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.GspoToken;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.SeqMeanTokenMean;

/**
 * GSPO-token: the sequence's ratio with the token's gradient; what verl calls gspo.
 *
 * @param anchor      the policy that the trust region is around
 * @param clipLow     the sequence's ratio moves freely down to {@code 1 - clip_low}; far narrower than a token's
 * @param clipHigh    and up to {@code 1 + clip_high}
 * @param aggregation how token losses become one number
 */
public record GspoTokenConfig(Anchor anchor, double clipLow, double clipHigh, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public GspoTokenConfig {
        atLeastZero("clip_low", clipLow);
        atLeastZero("clip_high", clipHigh);
    }

    public static GspoTokenConfig defaults() {
        return new GspoTokenConfig(Anchor.PROXIMAL, 3e-4, 4e-4, new SeqMeanTokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new GspoToken(new ClipRange(clipLow, clipHigh), aggregation.over(GlobalBatch.WHOLE));
    }
}
