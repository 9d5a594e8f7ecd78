package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.atLeastZero;

import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Gmpo;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.SeqMeanTokenMean;

/**
 * GMPO: the geometric mean of token ratios that are clipped one by one; a mean over sequences.
 *
 * @param anchor   the policy that the trust region is around
 * @param clipLow  a token's log ratio moves freely down to {@code -clip_low}
 * @param clipHigh and up to {@code clip_high}
 */
public record GmpoConfig(Anchor anchor, double clipLow, double clipHigh) implements ObjectiveConfig {
    public GmpoConfig {
        atLeastZero("clip_low", clipLow);
        atLeastZero("clip_high", clipHigh);
    }

    public static GmpoConfig defaults() {
        return new GmpoConfig(Anchor.PROXIMAL, 0.4, 0.4);
    }

    @Override
    public AggregationConfig aggregation() {
        return new SeqMeanTokenMean();
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new Gmpo(new ClipRange(clipLow, clipHigh), GlobalBatch.WHOLE);
    }
}
