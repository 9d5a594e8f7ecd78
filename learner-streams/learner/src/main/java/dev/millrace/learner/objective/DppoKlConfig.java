package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.atLeastZero;
import static dev.millrace.learner.objective.Bounds.positive;

import dev.millrace.corrections.objective.DppoKl;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * DPPO with a bound on the divergence of a token's probability.
 *
 * @param anchor      the policy that the trust region is around
 * @param low         divergence in nats beyond which pushing a token down further has no gradient
 * @param high        divergence beyond which pushing it up further has none
 * @param truncation  largest ratio that weighs a token
 * @param aggregation how token losses become one number
 */
public record DppoKlConfig(Anchor anchor, double low, double high, double truncation, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public DppoKlConfig {
        atLeastZero("low", low);
        atLeastZero("high", high);
        positive("truncation", truncation);
    }

    public static DppoKlConfig defaults() {
        return new DppoKlConfig(Anchor.PROXIMAL, 0.05, 0.05, 20, new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new DppoKl(low, high, truncation, aggregation.over(GlobalBatch.WHOLE));
    }
}
