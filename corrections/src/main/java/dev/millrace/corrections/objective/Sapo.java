package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * SAPO: a soft gate instead of a clip, per token {@code ℓ = −A · (4/τ) σ(τ (r − 1))}, {@code τ = τ_pos} where
 * {@code A > 0} and {@code τ_neg} otherwise.
 *
 * <p>Unit of correction: token. The derivative is {@code −A · 4 σ(1 − σ) · r}: on-policy exactly {@code −A}, fading
 * smoothly on both sides instead of falling to 0 at a bound. The log ratio is bounded to ±20 (derivative 0 beyond),
 * unless {@link #unbounded} is asked for. A larger {@code τ_neg} fades the push against a token sooner. Metrics:
 * approximate KL; nothing is clipped.
 *
 * <p>Source: arXiv 2511.20347, which averages over tokens within sequences; AReaL averages over tokens.
 */
public final class Sapo implements Objective {
    private final SoftGate gate;
    private final double bound;
    private final LossAggregation aggregation;

    private Sapo(SoftGate gate, double bound, LossAggregation aggregation) {
        this.gate = gate;
        this.bound = bound;
        this.aggregation = aggregation;
    }

    /**
     * @param tauPositive temperature for positive advantages; positive
     * @param tauNegative temperature for the others; positive, usually a little larger
     */
    public Sapo(double tauPositive, double tauNegative, LossAggregation aggregation) {
        this(new SoftGate(tauPositive, tauNegative), LogRatio.BOUND, aggregation);
    }

    /** As AReaL has it: the log ratio is not bounded. */
    public static Sapo unbounded(double tauPositive, double tauNegative, LossAggregation aggregation) {
        return new Sapo(new SoftGate(tauPositive, tauNegative), Double.POSITIVE_INFINITY, aggregation);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        return new TokenwiseLoss(input, aggregation)
                .apply(this::token, input.requireProximal("SAPO"))
                .withClipMetrics();
    }

    private void token(double current, double proximal, double advantage, TokenTerm term) {
        double logRatio = current - proximal;
        term.logRatio = Math.max(-bound, Math.min(bound, logRatio));
        gate.apply(Math.exp(term.logRatio), advantage, term);
        term.derivative *= Math.abs(logRatio) <= bound ? 1.0 : 0.0;
    }
}
