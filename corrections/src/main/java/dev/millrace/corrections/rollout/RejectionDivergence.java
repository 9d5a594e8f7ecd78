package dev.millrace.corrections.rollout;

import java.util.function.DoubleUnaryOperator;

/**
 * Three estimates of a token's share of {@code KL(sampler || target)}, from its log ratio
 * {@code l = log target - log sampler} bounded to {@code [-20, 20]}.
 *
 * <p>Source: Schulman, "Approximating KL Divergence" (2020). Here they are statistics to compare with a threshold, not
 * losses; as losses they have traps of their own.
 */
public enum RejectionDivergence {
    /** {@code k1 = -l}: unbiased, of either sign; bounded on both sides when compared with a threshold. */
    K1(l -> -l),
    /** {@code k2 = l^2 / 2}: never negative, symmetric. */
    K2(l -> 0.5 * l * l),
    /** {@code k3 = e^l - 1 - l}: unbiased and never negative; much larger for {@code l > 0} than for {@code l < 0}. */
    K3(l -> StrictMath.expm1(l) - l);

    private final DoubleUnaryOperator estimate;

    RejectionDivergence(DoubleUnaryOperator estimate) {
        this.estimate = estimate;
    }

    /** The estimate for one token. */
    public double of(double boundedLogRatio) {
        return estimate.applyAsDouble(boundedLogRatio);
    }
}
