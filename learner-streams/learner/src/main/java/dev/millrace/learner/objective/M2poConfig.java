package dev.millrace.learner.objective;

import dev.millrace.corrections.objective.M2po;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * M2PO's surrogate: no ratio is clipped, the second-moment mask is the trust region, and the loss is divided by the
 * tokens there were before that mask.
 *
 * @param anchor the policy that the ratio is taken to
 */
public record M2poConfig(Anchor anchor) implements ObjectiveConfig {
    public static M2poConfig defaults() {
        return new M2poConfig(Anchor.PROXIMAL);
    }

    @Override
    public AggregationConfig aggregation() {
        return new TokenMean();
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new M2po(aggregation().over(facts.beforeMasking()));
    }
}
