package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.atLeastZero;
import static dev.millrace.learner.objective.Bounds.inUnit;

import dev.millrace.corrections.objective.ClipCov;
import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * Clip-Cov: PPO's clipped surrogate, silenced on a few tokens drawn from those through which entropy falls; which, is
 * seeded by the optimiser's step, so that a repeated step draws the same.
 *
 * @param anchor         the policy that the trust region is around
 * @param clipLow        the ratio moves freely down to {@code 1 - clip_low}
 * @param clipHigh       and up to {@code 1 + clip_high}
 * @param share          share of the trained tokens that are silenced
 * @param covarianceLow  a candidate's covariance of advantage and log-prob is above this
 * @param covarianceHigh and below this
 * @param aggregation    how token losses become one number
 */
public record ClipCovConfig(
        Anchor anchor,
        double clipLow,
        double clipHigh,
        double share,
        double covarianceLow,
        double covarianceHigh,
        AggregationConfig aggregation)
        implements ObjectiveConfig {
    public ClipCovConfig {
        atLeastZero("clip_low", clipLow);
        atLeastZero("clip_high", clipHigh);
        inUnit("share", share);
        if (!(covarianceLow < covarianceHigh)) {
            throw new IllegalArgumentException(
                    "covariance_low must be below covariance_high=" + covarianceHigh + ": " + covarianceLow);
        }
    }

    public static ClipCovConfig defaults() {
        return new ClipCovConfig(Anchor.PROXIMAL, 0.2, 0.2, 2e-4, 1, 5, new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new ClipCov(
                new ClipRange(clipLow, clipHigh),
                share,
                covarianceLow,
                covarianceHigh,
                facts.optimizerSteps(),
                aggregation.over(GlobalBatch.WHOLE));
    }
}
