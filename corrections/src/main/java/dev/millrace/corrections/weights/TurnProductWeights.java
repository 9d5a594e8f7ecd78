package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Importance weights, one per turn: {@code w_k = min(prod_(t in k) rho_t, cap)}.
 *
 * <p>The exact ratio of the turn as one action, up to the truncation, and with the variance of a product. Turns are as
 * in {@link TurnWeights}, which takes the geometric mean instead. Its log is bounded to {@code [-20, 20]}.
 */
public final class TurnProductWeights implements WeightMethod {
    private final double logCap;

    /** @param cap largest weight; finite and at least 1, so that on-policy turns keep weight 1 */
    public TurnProductWeights(double cap) {
        this.logCap = Caps.logOfCap(cap);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TURN;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        return Turns.weigh(batch, ratio, weights, logCap, (logProduct, tokens) -> logProduct);
    }
}
