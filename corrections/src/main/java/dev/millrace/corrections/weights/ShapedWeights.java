package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Shaped importance weights, one per token: {@code w_t = rho_t / (rho_t + gamma)}.
 *
 * <p>The weight is increasing, concave and below 1, so nothing has to be truncated. With a small gamma, tokens that the
 * target finds unlikely keep a weight near 1 until their ratio falls to about gamma. On-policy tokens weigh
 * {@code 1 / (1 + gamma)}, not 1: the loss is scaled a little, and the caller may normalise.
 *
 * <p>Source: Yan et al., "Learning to Reason under Off-Policy Guidance" (arXiv 2504.14945), LUFFY's policy shaping,
 * gamma 0.1. There the denominator of the ratio is 1 for demonstrations; here it is the probability under the ratio's
 * sampler.
 *
 * @param gamma ratio with weight one half, positive, finite
 * @param batchNormalize divide weights by their batch mean
 */
public record ShapedWeights(double gamma, boolean batchNormalize) implements CappedWeights {
    public ShapedWeights {
        if (!(gamma > 0 && gamma < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("gamma must be positive and finite: gamma=" + gamma);
        }
    }

    /** That of the source, 0.1. */
    public static ShapedWeights defaults() {
        return new ShapedWeights(0.1, false);
    }

    @Override
    public String name() {
        return "shaped";
    }

    @Override
    public boolean bounds() {
        return false;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        return WeightTally.perToken(batch, ratio, weights, (tally, logRatio, token) -> {
            double rho = Math.exp(LogRatio.bounded(logRatio));
            return tally.kept(rho / (rho + gamma), 1);
        });
    }
}
