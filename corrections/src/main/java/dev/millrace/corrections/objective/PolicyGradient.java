package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * The plain policy gradient (REINFORCE, GPG): per token {@code ℓ = −w A log π}, so the derivative is {@code −w A}.
 *
 * <p>Unit of correction: that of the weights; without them, none: the gradient is right only for tokens the current
 * policy sampled. The loss value is not comparable between batches, since it moves with the entropy. No metrics, unless
 * a proximal policy is given: then the approximate KL to it.
 *
 * <p>Source: Williams 1992; Chu et al. 2025, GPG (arXiv 2504.02546).
 */
public final class PolicyGradient implements Objective {
    private final LossAggregation aggregation;

    public PolicyGradient(LossAggregation aggregation) {
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        TokenwiseLoss loss = new TokenwiseLoss(input, aggregation);
        if (input.hasProximal()) {
            return loss.apply(PolicyGradient::token, input.requireProximal("policy gradient"))
                    .withKlMetric();
        }
        return loss.apply(PolicyGradient::token, input.current()).withoutMetrics();
    }

    private static void token(double current, double anchor, double advantage, TokenTerm term) {
        term.logRatio = current - anchor;
        term.loss = -advantage * current;
        term.derivative = -advantage;
    }
}
