package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * OAPL: regression of the policy's log ratio onto the optimal advantage, per sequence
 * {@code ℓ = (β Σ_t (current_t − behavior_t) − A*)²}.
 *
 * <p>Unit of correction: sequence. The KL-regularised optimum satisfies {@code β log(π_opt / μ) = r − V_opt} exactly,
 * on any data whatever its age, so no importance weight is needed and the lagged engine is the regulariser itself. The
 * derivative is {@code 2 β (β Σ − A*)} on every trained token. Pass {@code A* = r − V̂*} as advantages ({@link
 * dev.millrace.corrections.advantage.SoftMaximum}); {@code A*} is their mean over the sequence. Weights, if any,
 * enter as their mean over the sequence. The log ratio is not bounded. Metrics: approximate KL to the behavior policy.
 *
 * <p>Source: arXiv 2602.19362, after A*-PO (arXiv 2505.20686), whose reading of two temperatures is implemented: one
 * for the value, in the advantage, and one for the regression, here. The paper sums over sequences; the mean differs by
 * a constant.
 */
public final class Oapl implements Objective {
    private final double beta;
    private final LossAggregation aggregation;

    /**
     * @param beta strength of the regularisation towards the behavior policy; positive
     * @param whole over how many sequences the loss is averaged
     */
    public Oapl(double beta, GlobalBatch whole) {
        if (!(beta > 0 && beta < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("beta must be positive and finite: " + beta);
        }
        this.beta = beta;
        this.aggregation = new LossAggregation.SequenceMeanTokenMean(whole);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        float[] behavior = input.requireBehavior("OAPL");
        return new SequencewiseLoss(input, aggregation)
                .apply(
                        (x, advantage, term) -> {
                            int trained = input.batch().trainedTokens(term.sequence);
                            double residual = beta * trained * x - advantage;
                            term.loss = residual * residual;
                            term.derivative = 2 * residual * beta * trained; // by the mean log ratio
                        },
                        behavior)
                .withKlMetric();
    }
}
