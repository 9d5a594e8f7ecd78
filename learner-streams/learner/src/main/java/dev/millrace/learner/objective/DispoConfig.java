package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.aroundOne;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.SignedPolicyGradient;
import dev.millrace.corrections.weights.DispoWeights;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;

/**
 * DISPO: the ratio to the behavior policy, bounded differently for correct and for incorrect answers.
 *
 * @param correctLower   smallest weight for a positive advantage
 * @param correctUpper   largest weight for a positive advantage
 * @param incorrectLower smallest weight for a negative advantage
 * @param incorrectUpper largest weight for a negative advantage
 * @param aggregation    how token losses become one number
 */
public record DispoConfig(
        double correctLower,
        double correctUpper,
        double incorrectLower,
        double incorrectUpper,
        AggregationConfig aggregation)
        implements ObjectiveConfig {
    public DispoConfig {
        aroundOne("correct_lower", correctLower, "correct_upper", correctUpper);
        aroundOne("incorrect_lower", incorrectLower, "incorrect_upper", incorrectUpper);
    }

    public static DispoConfig defaults() {
        return new DispoConfig(0.8, 5, 0.8, 1.2, new TokenMean());
    }

    @Override
    public Objective objective(UpdateFacts facts) {
        return new SignedPolicyGradient(
                new DispoWeights(correctLower, correctUpper, incorrectLower, incorrectUpper),
                aggregation.over(GlobalBatch.WHOLE));
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }
}
