package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.OptionalDouble;

/**
 * Importance weights, one per turn: {@code w_k = min(prod_(t in k) rho_t, cap)}.
 *
 * <p>The exact ratio of the turn as one action, up to the truncation, and with the variance of a product. Turns are as
 * in {@link TurnWeights}, which takes the geometric mean instead. Its log is bounded to {@code [-20, 20]}.
 *
 * <p>Unit: turn. Source: truncated importance sampling (Ionides 2008) of turns.
 *
 * @param threshold largest weight, finite, at least 1
 * @param batchNormalize divide weights by their batch mean
 */
public record TurnProductWeights(double threshold, boolean batchNormalize) implements CappedWeights {
    public TurnProductWeights {
        Caps.requireThreshold(threshold);
    }

    public static TurnProductWeights defaults() {
        return new TurnProductWeights(2, false);
    }

    @Override
    public String name() {
        return "turn_product";
    }

    @Override
    public OptionalDouble cap() {
        return OptionalDouble.of(threshold);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TURN;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        return Turns.weigh(batch, ratio, weights, Caps.logOfCap(threshold), (logProduct, tokens) -> logProduct);
    }
}
