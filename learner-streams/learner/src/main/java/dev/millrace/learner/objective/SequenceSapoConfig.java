package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.positive;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.SequenceSapo;
import dev.millrace.learner.objective.AggregationConfig.SeqMeanTokenMean;

/**
 * SAPO's soft gate on the sequence's ratio.
 *
 * @param anchor      the policy that the gate is around
 * @param tauPositive temperature of the gate where the advantage is positive
 * @param tauNegative and where it is not; larger fades sooner
 * @param aggregation how token losses become one number
 */
public record SequenceSapoConfig(Anchor anchor, double tauPositive, double tauNegative, AggregationConfig aggregation)
        implements ObjectiveConfig {
    public SequenceSapoConfig {
        positive("tau_positive", tauPositive);
        positive("tau_negative", tauNegative);
    }

    public static SequenceSapoConfig defaults() {
        return new SequenceSapoConfig(Anchor.PROXIMAL, 1, 1.05, new SeqMeanTokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new SequenceSapo(tauPositive, tauNegative, aggregation.over(GlobalBatch.WHOLE));
    }
}
