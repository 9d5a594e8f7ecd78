package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.positive;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.Sapo;
import dev.millrace.learner.objective.AggregationConfig.SeqMeanTokenMean;

/**
 * SAPO: a soft gate on a token's ratio instead of a clip.
 *
 * @param anchor      the policy that the gate is around
 * @param tauPositive temperature of the gate where the advantage is positive
 * @param tauNegative and where it is not; larger fades sooner
 * @param aggregation how token losses become one number
 */
public record SapoConfig(Anchor anchor, double tauPositive, double tauNegative, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public SapoConfig {
        positive("tau_positive", tauPositive);
        positive("tau_negative", tauNegative);
    }

    public static SapoConfig defaults() {
        return new SapoConfig(Anchor.PROXIMAL, 1, 1.05, new SeqMeanTokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new Sapo(tauPositive, tauNegative, aggregation.over(GlobalBatch.WHOLE));
    }
}
