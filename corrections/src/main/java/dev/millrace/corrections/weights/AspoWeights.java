package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * ASPO's asymmetric weights, one per token: {@code min(1 / rho, cap)} for positive and {@code min(rho, cap)} for
 * negative advantages, masked where PPO would clip.
 *
 * <p>For a token that is to become more likely, the plain ratio is largest where it already is likely and smallest
 * where there is most to gain; the flipped ratio turns that round. What PPO's clipping stops stays stopped, by the
 * unflipped ratio: {@code rho > 1 + high} for positive, {@code rho < 1 - low} for negative advantages. The cap is
 * soft: it bounds the weight and lets the gradient pass.
 *
 * <p>Unit: token. Source: Wang et al., <i>ASPO</i>, arXiv 2510.06062; its flipped ratio is a product whose gradient
 * is {@code 1 / rho} times that of the log-prob, which is the weight here. The paper motivates the cap by flipped
 * ratios; here one cap holds for both signs.
 */
public final class AspoWeights implements SignedWeightMethod {
    private final double logClipLower;
    private final double logClipUpper;
    private final double logCap;

    /**
     * @param low the clip range below 1, in (0, 1)
     * @param high the clip range above 1, positive and finite
     * @param cap largest weight; finite and at least 1
     */
    public AspoWeights(double low, double high, double cap) {
        if (!(low > 0.0 && low < 1.0 && high > 0.0 && high < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "clip range must satisfy 0 < low < 1 and 0 < high < infinity: low=" + low + ", high=" + high);
        }
        this.logClipLower = Math.log1p(-low);
        this.logClipUpper = Math.log1p(high);
        this.logCap = Caps.logOfCap(cap);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] advantages, float[] weights) {
        ratio.requireFits(batch);
        batch.requireFinite("advantages", advantages);
        batch.requireLength("weights", weights.length);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            for (int t = batch.start(s); t < batch.end(s); t++) {
                weights[t] = batch.isTrained(t)
                        ? (float) weight(ratio.finiteAt(batch, s, t), advantages[t] >= 0f, tally)
                        : 0f;
            }
        }
        return tally.summary();
    }

    private double weight(double logRatio, boolean up, WeightTally tally) {
        if (up ? logRatio > logClipUpper : logRatio < logClipLower) {
            tally.masked(1);
            return 0.0;
        }
        double logWeight = up ? -logRatio : logRatio;
        double weight = Math.exp(LogRatio.bounded(Math.min(logWeight, logCap)));
        if (logWeight > logCap) {
            tally.truncated(weight, 1);
        } else {
            tally.kept(weight, 1);
        }
        return weight;
    }
}
