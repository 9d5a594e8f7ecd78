package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.aroundOne;

import dev.millrace.corrections.ratio.LogRatio;

/**
 * DISPO: the policy gradient {@code ℓ = −sg[w] A log π} with {@code w = clip(rho, lower, upper)}, rho being current /
 * behavior, with bounds of their own for correct and for incorrect answers.
 *
 * <p>The weight is a constant and the gradient always passes, as in CISPO; four bounds steer four effects. By the
 * authors' ablations: for correct answers weights above 1 raise and weights below 1 lower the entropy; for incorrect
 * ones bounds that are too tight end in repetition (above 1) or in vanishing length (below 1).
 *
 * <p>Unit of correction: token, by the sign of its advantage. The derivative is {@code −w A}. Metrics: approximate KL to
 * the behavior policy.
 *
 * <p>Source: Karaman et al., <i>DISPO</i>, arXiv 2602.00983, which writes the bounds as {@code 1 - eps} and
 * {@code 1 + eps}; here they are given as the weights themselves.
 *
 * @param correctLower smallest weight for a positive advantage
 * @param correctUpper largest weight for a positive advantage
 * @param incorrectLower smallest weight for a negative advantage
 * @param incorrectUpper largest weight for a negative advantage
 */
public record Dispo(double correctLower, double correctUpper, double incorrectLower, double incorrectUpper)
        implements BehaviorObjective {
    public Dispo {
        aroundOne("correct_lower", correctLower, "correct_upper", correctUpper);
        aroundOne("incorrect_lower", incorrectLower, "incorrect_upper", incorrectUpper);
    }

    public static Dispo defaults() {
        return new Dispo(0.8, 5, 0.8, 1.2);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return SignedWeights.perToken(
                (logRatio, correct) -> Math.max(
                        correct ? correctLower : incorrectLower,
                        Math.min(correct ? correctUpper : incorrectUpper, Math.exp(LogRatio.bounded(logRatio)))),
                input,
                facts);
    }
}
