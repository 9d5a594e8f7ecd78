package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.positive;

/**
 * OAPL: regression of the policy's log ratio onto the optimal advantage, per sequence
 * {@code ℓ = (β Σ_t (current_t − behavior_t) − A*)²}.
 *
 * <p>Unit of correction: sequence. The KL-regularised optimum satisfies {@code β log(π_opt / μ) = r − V_opt} exactly,
 * on data of any age. No importance weight is needed; the lagged engine is the regulariser itself. The derivative
 * is {@code 2 β (β Σ − A*)} on every trained token. Pass {@code A* = r − V̂*} as advantages
 * ({@link dev.millrace.corrections.advantage.SoftMaximum}); {@code A*} is their mean over the sequence. Weights, if
 * any, enter as their mean over the sequence. The log ratio is not bounded. Metrics: approximate KL to the behavior
 * policy.
 *
 * <p>Source: arXiv 2602.19362, after A*-PO (arXiv 2505.20686). As in A*-PO there are two temperatures: one for the
 * value, in the advantage, and one for the regression, here. The paper sums over sequences; the mean differs by a
 * constant.
 *
 * @param beta strength of regularisation towards the behavior policy
 */
public record Oapl(double beta) implements BehaviorObjective, SequenceObjective {
    public Oapl {
        positive("beta", beta);
    }

    public static Oapl defaults() {
        return new Oapl(0.1);
    }

    @Override
    public boolean regressesOnOptimalAdvantage() {
        return true;
    }

    @Override
    public boolean isPolicyGradientAtAnchor() {
        return false;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        float[] behavior = input.requireBehavior("OAPL");
        return new SequencewiseLoss(input, facts.coefficients(input.batch()))
                .apply(
                        (x, advantage, term) -> {
                            int trained = input.batch().trainedTokens(term.sequence);
                            double residual = beta * trained * x - advantage;
                            term.loss = residual * residual;
                            term.acted = x != 0;
                            term.derivative = 2 * residual * beta * trained; // by the mean log ratio
                        },
                        behavior)
                .withKlMetric();
    }
}
