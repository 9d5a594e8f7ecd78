package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * The unclipped surrogate that M2PO optimises: {@code ℓ = −M_t r_t A_t}, {@code r = exp(current − proximal)}, with the
 * second-moment mask {@code M} in the batch's mask.
 *
 * <p>Unit of correction: token. The trust region is in the mask, computed once per batch, and no ratio is clipped; so
 * the derivative is {@code −A r} on every token the mask left. The loss is divided by the tokens <em>before</em> the
 * mask: mask the input with {@link ObjectiveInput#withMask} and give the count of before to the aggregation, as
 * {@link #over} does. The log ratio is bounded to ±20. Metrics: approximate KL.
 *
 * <p>Source: Zheng et al. 2025 (arXiv 2510.01161).
 */
public final class M2po implements Objective {
    private final LossAggregation aggregation;

    public M2po(LossAggregation aggregation) {
        this.aggregation = aggregation;
    }

    /** The objective with the paper's denominator: all trained tokens before masking. */
    public static M2po over(int tokensBeforeMasking) {
        return new M2po(
                new LossAggregation.TokenMean(new GlobalBatch(tokensBeforeMasking, GlobalBatch.OF_THIS_BATCH, 1)));
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        return new TokenwiseLoss(input, aggregation)
                .apply(M2po::token, input.requireProximal("M2PO"))
                .withKlMetric();
    }

    private static void token(double current, double proximal, double advantage, TokenTerm term) {
        term.logRatio = BoundedLogRatio.of(current, proximal);
        term.loss = -advantage * Math.exp(term.logRatio);
        term.derivative = term.loss * BoundedLogRatio.slope(current, proximal);
    }
}
