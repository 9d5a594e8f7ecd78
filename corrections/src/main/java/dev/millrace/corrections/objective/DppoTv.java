package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/**
 * DPPO with a total-variation trust region: per token {@code ℓ = −A · sg[min(r, c)] · sg[M] · log π}, where
 * {@code M = 1} while the probability has not moved too far in the direction the advantage pushes:
 * {@code π − π_prox <= high} if {@code A > 0}, {@code π − π_prox >= −low} otherwise.
 *
 * <p>Unit of correction: token. PPO bounds a ratio, so a token of probability 0.001 is clipped after a change no one
 * would notice, and one of 0.9 never; here the bound is on the change of probability itself (the total variation of the
 * two-outcome distribution "this token or another"). The derivative is {@code −A min(r, c) M}: the ratio is a constant
 * weight, truncated at {@code c}, bounded to e^±20. Metrics: approximate KL, fraction with {@code M = 0}, fraction
 * whose ratio was truncated.
 *
 * <p>Source: arXiv 2602.04879, "binary TV"; the truncation is its section 5.4.
 */
public final class DppoTv implements Objective {
    /** Truncation of the ratio; the paper advises a large one, since truncation biases. */
    public static final double DEFAULT_TRUNCATION = 20.0;

    private final double low;
    private final double high;
    private final double truncation;
    private final LossAggregation aggregation;

    /**
     * @param low largest fall of a token's probability, for advantages that are not positive
     * @param high largest rise, for positive advantages
     * @param truncation largest ratio used as a weight; positive
     */
    public DppoTv(double low, double high, double truncation, LossAggregation aggregation) {
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
                .apply(this::token, input.requireProximal("DPPO-TV"))
                .withClipMetrics();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        double rise = Math.exp(current) - Math.exp(proximal);
        boolean inside = advantage > 0 ? rise <= high : rise >= -low;
        DivergenceBounds.maskedPolicyGradient(current, proximal, advantage, inside, truncation, term);
    }
}
