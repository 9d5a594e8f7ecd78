package dev.millrace.corrections.objective;

/**
 * The plain policy gradient (REINFORCE): per token {@code ℓ = −w A log π}, so the derivative is {@code −w A}.
 *
 * <p>Unit of correction: that of the weights; without them, none: the gradient is right only for tokens the current
 * policy sampled. The loss value is not comparable between batches, since it moves with the entropy. No metrics, unless
 * a proximal policy is given: then the approximate KL to it.
 *
 * <p>Source: Williams 1992.
 */
public record Reinforce() implements Objective {
    @Override
    public boolean linear() {
        return true;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        TokenwiseLoss loss = new TokenwiseLoss(input, facts.coefficients(input.batch()));
        if (input.hasProximal()) {
            return loss.apply(Reinforce::token, input.requireProximal("policy gradient"))
                    .withKlMetric();
        }
        return loss.apply(Reinforce::token, input.current()).withoutMetrics();
    }

    private static void token(double current, double anchor, double advantage, TokenTerm term) {
        term.logRatio = current - anchor;
        term.loss = -advantage * current;
        term.derivative = -advantage;
    }
}
