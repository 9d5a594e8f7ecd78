package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.positive;

import dev.millrace.corrections.objective.Dro;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * DRO: the policy gradient with a quadratic leash; no ratio is formed.
 *
 * @param anchor      the policy that the leash is tied to
 * @param beta        strength of the leash
 * @param aggregation how token losses become one number
 */
public record DroConfig(Anchor anchor, double beta, AggregationConfig aggregation) implements ObjectiveConfig {
    public DroConfig {
        positive("beta", beta);
    }

    public static DroConfig defaults() {
        return new DroConfig(Anchor.PROXIMAL, 0.1, new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new Dro(beta, aggregation.over(GlobalBatch.WHOLE));
    }
}
