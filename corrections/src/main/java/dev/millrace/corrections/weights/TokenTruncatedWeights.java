package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Truncated importance weights, one per token: {@code w_t = min(rho_t, cap)}.
 *
 * <p>Low variance whatever the length, at the price of a bias: a token's weight ignores how unlikely the tokens before
 * it have become. Ratios are bounded to {@code e^-20} below.
 *
 * <p>Source: Yao et al., "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training" (2025), token-level
 * TIS; verl {@code rollout_is=token} with a single threshold.
 */
public final class TokenTruncatedWeights implements WeightMethod {
    private final double logCap;

    /** @param cap largest weight; finite and at least 1, so that on-policy tokens keep weight 1 */
    public TokenTruncatedWeights(double cap) {
        this.logCap = Caps.logOfCap(cap);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        ratio.requireFits(batch);
        batch.requireLength("weights", weights.length);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            for (int t = batch.start(s); t < batch.end(s); t++) {
                weights[t] = batch.isTrained(t) ? (float) weight(ratio.finiteAt(batch, s, t), tally) : 0f;
            }
        }
        return tally.summary();
    }

    private double weight(double logRatio, WeightTally tally) {
        double weight = Math.exp(LogRatio.bounded(Math.min(logRatio, logCap)));
        if (logRatio > logCap) {
            tally.truncated(weight, 1);
        } else {
            tally.kept(weight, 1);
        }
        return weight;
    }
}
