package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * DRO: the policy gradient with a quadratic leash, per token {@code ℓ = −(A log π − (β/2) (log π − log π_prox)²)}.
 *
 * <p>Unit of correction: token. No ratio is formed, so nothing can explode: the derivative is {@code −A + β (log π −
 * log π_prox)}, which vanishes at {@code log π − log π_prox = A / β}. The log ratio is not bounded. Metrics:
 * approximate KL.
 *
 * <p>Source: Richemond et al. 2024 (arXiv 2405.19107), in the token form that Tinker and verl use: with a given
 * advantage instead of a learnt value, and on single tokens instead of whole sequences.
 */
public final class Dro implements Objective {
    private final double beta;
    private final LossAggregation aggregation;

    /** @param beta strength of the leash; above 0, since without it this is the plain policy gradient */
    public Dro(double beta, LossAggregation aggregation) {
        if (!(beta > 0 && beta < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "the beta of DRO must be above 0 and finite, since without its leash it is REINFORCE: " + beta);
        }
        this.beta = beta;
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        return new TokenwiseLoss(input, aggregation)
                .apply(this::token, input.requireProximal("DRO"))
                .withKlMetric();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        term.logRatio = current - proximal;
        term.loss = -advantage * current + 0.5 * beta * term.logRatio * term.logRatio;
        term.derivative = -advantage + beta * term.logRatio;
    }
}
