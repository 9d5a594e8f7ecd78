package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.atLeastZero;
import static dev.millrace.learner.objective.Bounds.positive;

import dev.millrace.corrections.objective.DppoTv;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * DPPO with a bound on the change of a token's probability.
 *
 * @param anchor      the policy that the trust region is around
 * @param low         how far a probability may fall before pushing it down further has no gradient
 * @param high        how far it may rise before pushing it up further has none
 * @param truncation  largest ratio that weighs a token
 * @param aggregation how token losses become one number
 */
public record DppoTvConfig(Anchor anchor, double low, double high, double truncation, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public DppoTvConfig {
        atLeastZero("low", low);
        atLeastZero("high", high);
        positive("truncation", truncation);
    }

    public static DppoTvConfig defaults() {
        return new DppoTvConfig(Anchor.PROXIMAL, 0.2, 0.2, 20, new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new DppoTv(low, high, truncation, aggregation.over(GlobalBatch.WHOLE));
    }
}
