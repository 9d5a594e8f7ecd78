package dev.millrace.learner.objective;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.SignedPolicyGradient;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * TOPR: good answers at weight 1, bad ones truncated at 1; weights are current over behavior.
 *
 * @param aggregation how token losses become one number
 */
public record ToprConfig(AggregationConfig aggregation) implements ObjectiveConfig {
    public static ToprConfig defaults() {
        return new ToprConfig(new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return SignedPolicyGradient.topr(aggregation.over(GlobalBatch.WHOLE));
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }
}
