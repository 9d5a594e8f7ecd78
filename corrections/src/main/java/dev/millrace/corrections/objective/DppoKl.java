package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * DPPO with a Kullback-Leibler trust region: per token {@code ℓ = −A · sg[min(r, c)] · sg[M] · log π}, where
 * {@code M = 0} once the two-outcome divergence {@code KL = p log(p/π) + (1−p) log((1−p)/(1−π))}, {@code p = π_prox},
 * exceeds its bound in the direction the advantage pushes.
 *
 * <p>Unit of correction: token. As {@link DppoTv} with another distance: {@code M = 0} if {@code A > 0}, {@code KL >
 * high} and {@code π > p}, or if {@code A <= 0}, {@code KL > low} and {@code π < p}. 1e-8 is added to both complements,
 * so that a certain token has a finite divergence. Metrics as {@link DppoTv}.
 *
 * <p>Source: arXiv 2602.04879, "binary KL".
 */
public final class DppoKl implements Objective {
    private static final double COMPLEMENT_FLOOR = 1e-8;

    private final double low;
    private final double high;
    private final double truncation;
    private final LossAggregation aggregation;

    /**
     * @param low largest divergence of a token that fell, for advantages that are not positive
     * @param high largest divergence of a token that rose, for positive advantages
     * @param truncation largest ratio used as a weight; positive
     */
    public DppoKl(double low, double high, double truncation, LossAggregation aggregation) {
        DivergenceBounds.require(low, high, truncation);
        this.low = low;
        this.high = high;
        this.truncation = truncation;
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        return new TokenwiseLoss(input, aggregation)
                .apply(this::token, input.requireProximal("DPPO-KL"))
                .withClipMetrics();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        double probability = Math.exp(current);
        double before = Math.exp(proximal);
        double divergence = before * (proximal - current)
                + (1 - before) * Math.log((1 - before + COMPLEMENT_FLOOR) / (1 - probability + COMPLEMENT_FLOOR));
        boolean inside = advantage > 0
                ? divergence <= high || probability <= before
                : divergence <= low || probability >= before;
        DivergenceBounds.maskedPolicyGradient(current, proximal, advantage, inside, truncation, term);
    }
}
