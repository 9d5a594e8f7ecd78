package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.positive;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.SignedPolicyGradient;
import dev.millrace.corrections.weights.AspoWeights;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * ASPO: the ratio to the behavior policy, flipped for positive advantages, masked where PPO would clip.
 *
 * @param clipLow     the clip range below 1; below 1
 * @param clipHigh    the clip range above 1
 * @param cap         largest weight
 * @param aggregation how token losses become one number
 */
public record AspoConfig(double clipLow, double clipHigh, double cap, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public AspoConfig {
        if (!(clipLow > 0 && clipLow < 1)) {
            throw new IllegalArgumentException("clip_low must be above 0 and below 1: " + clipLow);
        }
        positive("clip_high", clipHigh);
        if (!(cap >= 1 && cap < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("cap must be at least 1 and finite: " + cap);
        }
    }

    public static AspoConfig defaults() {
        return new AspoConfig(0.2, 0.2, 3, new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new SignedPolicyGradient(new AspoWeights(clipLow, clipHigh, cap), aggregation.over(GlobalBatch.WHOLE));
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }
}
