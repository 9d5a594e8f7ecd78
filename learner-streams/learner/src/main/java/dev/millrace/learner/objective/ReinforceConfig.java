package dev.millrace.learner.objective;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.PolicyGradient;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * The policy gradient {@code −w A log π}; no trust region.
 *
 * @param aggregation how token losses become one number
 */
public record ReinforceConfig(AggregationConfig aggregation) implements ObjectiveConfig {
    public static ReinforceConfig defaults() {
        return new ReinforceConfig(new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new PolicyGradient(aggregation.over(GlobalBatch.WHOLE));
    }

    @Override
    public boolean linear() {
        return true;
    }
}
