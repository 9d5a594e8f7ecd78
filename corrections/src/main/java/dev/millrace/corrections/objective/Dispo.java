package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.aroundOne;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.weights.DispoWeights;

/**
 * DISPO: the policy gradient {@code ℓ = −sg[w] A log π} under the ratio to the behavior policy, bounded differently for
 * correct and for incorrect answers.
 *
 * <p>Unit of correction: token. The derivative is {@code −w A}. Metrics: approximate KL to the behavior policy.
 *
 * <p>Source: see {@link DispoWeights}.
 *
 * @param correctLower smallest weight for a positive advantage
 * @param correctUpper largest weight for a positive advantage
 * @param incorrectLower smallest weight for a negative advantage
 * @param incorrectUpper largest weight for a negative advantage
 */
public record Dispo(double correctLower, double correctUpper, double incorrectLower, double incorrectUpper)
        implements Objective {
    public Dispo {
        aroundOne("correct_lower", correctLower, "correct_upper", correctUpper);
        aroundOne("incorrect_lower", incorrectLower, "incorrect_upper", incorrectUpper);
    }

    public static Dispo defaults() {
        return new Dispo(0.8, 5, 0.8, 1.2);
    }

    @Override
    public CorrectionUnit unit() {
        return weights().unit();
    }

    @Override
    public Anchor anchor() {
        return Anchor.BEHAVIOR;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return SignedWeights.policyGradient(weights(), input, facts);
    }

    private DispoWeights weights() {
        return new DispoWeights(correctLower, correctUpper, incorrectLower, incorrectUpper);
    }
}
