package dev.millrace.corrections.rollout;

/**
 * Three estimates of a token's share of {@code KL(sampler || target)}, from its log ratio
 * {@code l = log target - log sampler} bounded to {@code [-20, 20]}.
 *
 * <p>Source: Schulman, "Approximating KL Divergence" (2020). Here they are statistics to compare with a threshold, not
 * losses; as losses they have traps of their own.
 */
public enum RejectionDivergence {
    /** {@code k1 = -l}: unbiased, of either sign; bounded on both sides when compared with a threshold. */
    K1 {
        @Override
        public double of(double boundedLogRatio) {
            return -boundedLogRatio;
        }
    },
    /** {@code k2 = l^2 / 2}: never negative, symmetric. */
    K2 {
        @Override
        public double of(double boundedLogRatio) {
            return 0.5 * boundedLogRatio * boundedLogRatio;
        }
    },
    /** {@code k3 = e^l - 1 - l}: unbiased and never negative; much larger for {@code l > 0} than for {@code l < 0}. */
    K3 {
        @Override
        public double of(double boundedLogRatio) {
            return StrictMath.expm1(boundedLogRatio) - boundedLogRatio;
        }
    };

    /** The estimate for one token. */
    public abstract double of(double boundedLogRatio);
}
