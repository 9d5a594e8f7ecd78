package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Truncated importance weights, one per sequence: {@code w_s = min(prod_t rho_t, cap)}.
 *
 * <p>The product runs over trained tokens, in log space, and each of them receives the same weight. Unbiased up to the
 * truncation, but its variance grows with the length: small differences per token add up, so long sequences sit on the
 * cap or near 0. The log of the product is bounded to {@code [-20, 20]}.
 *
 * <p>Source: truncated importance sampling (Ionides 2008) of whole rollouts; verl {@code rollout_is=sequence} with a
 * single threshold.
 */
public final class SequenceTruncatedWeights implements WeightMethod {
    private final double logCap;

    /** @param cap largest weight; finite and at least 1, so that on-policy sequences keep weight 1 */
    public SequenceTruncatedWeights(double cap) {
        this.logCap = Caps.logOfCap(cap);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        return WeightTally.perSequence(
                batch,
                ratio,
                weights,
                (tally, logRatio, sequence) -> tally.capped(logRatio, logCap, batch.trainedTokens(sequence)));
    }
}
