package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.positive;

/**
 * DRO: the policy gradient with a quadratic leash, per token {@code ℓ = −(A log π − (β/2) (log π − log π_prox)²)}.
 *
 * <p>Unit of correction: token. No ratio is formed, so nothing can explode: the derivative is {@code −A + β (log π −
 * log π_prox)}, which vanishes at {@code log π − log π_prox = A / β}. The log ratio is not bounded. Metrics:
 * approximate KL.
 *
 * <p>Source: Richemond et al. 2024 (arXiv 2405.19107), in the token form that Tinker and verl use: with a given
 * advantage instead of a learnt value, and on single tokens instead of whole sequences.
 *
 * @param anchor policy to compare with
 * @param beta strength of the penalty, positive
 */
public record Dro(Anchor anchor, double beta) implements Objective {
    public Dro {
        positive("beta", beta);
    }

    public static Dro defaults() {
        return new Dro(Anchor.PROXIMAL, 0.1);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(this::token, input.requireProximal("DRO"))
                .withKlMetric();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        term.logRatio = current - proximal;
        term.loss = -advantage * current + 0.5 * beta * term.logRatio * term.logRatio;
        term.acted = term.logRatio != 0;
        term.derivative = -advantage + beta * term.logRatio;
    }
}
