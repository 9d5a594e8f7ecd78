package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.WeightStage;
import java.util.OptionalDouble;

/**
 * One ratio for everything, capped on one side only: {@code w_t = min(current/behavior, cap)}.
 *
 * <p>The weight does the work of the correction and of the trust region at once: there is no proximal policy, no lower
 * bound, and no additional clipping. So it takes the full ratio, which is proximal/behavior at the start of a step. It
 * refuses any other ratio, which would silently leave a part of the gap uncorrected.
 *
 * <p>Source: Wu et al., "LlamaRL" (arXiv 2505.24034), AIPO, with a cap of 2 to 10.
 *
 * @param threshold largest weight, finite, at least 1
 * @param batchNormalize divide weights by their batch mean
 */
public record SingleSideCapWeights(double threshold, boolean batchNormalize) implements CappedWeights {
    public SingleSideCapWeights {
        Caps.requireThreshold(threshold);
    }

    public static SingleSideCapWeights defaults() {
        return new SingleSideCapWeights(5, false);
    }

    @Override
    public String name() {
        return "single_side_cap";
    }

    @Override
    public OptionalDouble cap() {
        return OptionalDouble.of(threshold);
    }

    /** @throws IllegalArgumentException if a part of the gap would be left to somebody else */
    @Override
    public WeightStage comparing(RatioKind ratio) {
        requireWholeGap(ratio);
        return CappedWeights.super.comparing(ratio);
    }

    /** @throws IllegalArgumentException also if {@code ratio} leaves a part of the gap to somebody else */
    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        requireWholeGap(ratio.kind());
        return new TokenTruncatedWeights(threshold).compute(batch, ratio, weights);
    }

    private static void requireWholeGap(RatioKind kind) {
        if (kind != RatioKind.FULL && kind != RatioKind.ANCHOR) {
            throw new IllegalArgumentException("single_side_cap corrects the full ratio current/behavior, not "
                    + kind.target() + "/" + kind.sampler() + "; for that, take weights.kind=token");
        }
    }
}
