package dev.millrace.corrections.objective;

/**
 * The unclipped surrogate that M2PO optimises: {@code ℓ = −M_t r_t A_t}, {@code r = exp(current − proximal)}, with the
 * second-moment mask {@code M} in the batch's mask.
 *
 * <p>Unit of correction: token. The trust region is in the mask, computed once per batch, and no ratio is clipped; so
 * the derivative is {@code −A r} on every token the mask left. The loss is divided by the tokens <em>before</em> the
 * mask: mask the input with {@link ObjectiveInput#withMask} and give the count of before to the aggregation, as
 * {@link UpdateFacts#coefficientsBeforeMasking} does. The log ratio is bounded to ±20. Metrics: approximate KL.
 *
 * <p>Source: Zheng et al. 2025 (arXiv 2510.01161).
 *
 * @param anchor policy to compare with
 */
public record M2poSurrogate(Anchor anchor) implements Objective {
    public static M2poSurrogate defaults() {
        return new M2poSurrogate(Anchor.PROXIMAL);
    }

    @Override
    public String name() {
        return "m2po";
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new TokenwiseLoss(input, facts.coefficientsBeforeMasking(input.batch()))
                .apply(M2poSurrogate::token, input.requireProximal("M2PO"))
                .withKlMetric();
    }

    private static void token(double current, double proximal, double advantage, TokenTerm term) {
        term.logRatio = BoundedLogRatio.of(current, proximal);
        term.loss = -advantage * Math.exp(term.logRatio);
        term.derivative = term.loss * BoundedLogRatio.slope(current, proximal);
    }
}
