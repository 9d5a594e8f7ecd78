package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;

/**
 * One ratio for everything, capped on one side only: {@code w_t = min(current/behavior, cap)}.
 *
 * <p>The weight does the work of the correction and of the trust region at once: there is no proximal policy, no lower
 * bound, and no clipping beside it. So it takes the full ratio and refuses any other, which would leave a part of the
 * gap uncorrected without saying so.
 *
 * <p>Source: Wu et al., "LlamaRL" (arXiv 2505.24034), AIPO, with a cap of 2 to 10.
 */
public final class SingleSideCapWeights implements WeightMethod {
    private final TokenTruncatedWeights truncated;

    /** @param cap largest weight; finite and at least 1, so that on-policy tokens keep weight 1 */
    public SingleSideCapWeights(double cap) {
        this.truncated = new TokenTruncatedWeights(cap);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    /** @throws IllegalArgumentException also if {@code ratio} is not {@link RatioKind#FULL} */
    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        if (ratio.kind() != RatioKind.FULL) {
            throw new IllegalArgumentException("a single-side cap corrects the full ratio current/behavior, not "
                    + ratio.kind().target() + "/" + ratio.kind().sampler() + "; for that, take token-truncated "
                    + "weights");
        }
        return truncated.compute(batch, ratio, weights);
    }
}
