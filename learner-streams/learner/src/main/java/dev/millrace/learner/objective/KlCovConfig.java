package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.atLeastZero;
import static dev.millrace.learner.objective.Bounds.inUnit;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.KlCov;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * KL-Cov: the unclipped surrogate, with a penalty on the tokens through which entropy falls.
 *
 * @param anchor      the policy that ratio and penalty are taken to
 * @param share       share of the trained tokens that are held
 * @param penalty     on the absolute log ratio of a held token
 * @param aggregation how token losses become one number
 */
public record KlCovConfig(Anchor anchor, double share, double penalty, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public KlCovConfig {
        inUnit("share", share);
        atLeastZero("penalty", penalty);
    }

    public static KlCovConfig defaults() {
        return new KlCovConfig(Anchor.PROXIMAL, 2e-4, 1, new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new KlCov(share, penalty, aggregation.over(GlobalBatch.WHOLE));
    }
}
