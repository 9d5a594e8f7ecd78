package dev.millrace.corrections.trm;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;
import java.util.OptionalDouble;

/**
 * Trust region mask from the sampled tokens alone: a sequence is rejected if {@code max_t |log rho_t|} or
 * {@code mean_t (rho_t - 1 - log rho_t)} exceeds its bound.
 *
 * <p>The first is symmetric, so it sees tokens that became unlikely as well as likely ones; k3 is the unbiased
 * estimate of KL(behavior || current), but at {@code rho = 1/100} it is 26 times smaller than at {@code rho = 100},
 * which makes it fit for means and unfit for a maximum. Both are detectors: one sample says little about the
 * divergence at its context, so no error bound follows from passing. {@link ExactTrustRegionMask} gives one.
 *
 * <p>Unit: sequence. A bound on the maximum rejects long sequences more often; the mean of k3 does not depend on
 * length. Bounds are inclusive. Immutable and thread-safe.
 *
 * @param maxAbsLogRatio bound on the largest {@code |log rho|}, positive and finite
 * @param meanK3 bound on the mean k3, positive and finite
 */
public record SampledTrustRegionMask(OptionalDouble maxAbsLogRatio, OptionalDouble meanK3) {
    public SampledTrustRegionMask {
        if (maxAbsLogRatio.isEmpty() && meanK3.isEmpty()) {
            throw new IllegalArgumentException("a trust region needs a bound: give maxAbsLogRatio, meanK3 or both");
        }
        requirePositive("maxAbsLogRatio", maxAbsLogRatio);
        requirePositive("meanK3", meanK3);
    }

    /** Rejects by the largest {@code |log rho|} of a sequence. */
    public static SampledTrustRegionMask byLargestLogRatio(double bound) {
        return new SampledTrustRegionMask(OptionalDouble.of(bound), OptionalDouble.empty());
    }

    /** Rejects by the mean k3 of a sequence. */
    public static SampledTrustRegionMask byMeanK3(double bound) {
        return new SampledTrustRegionMask(OptionalDouble.empty(), OptionalDouble.of(bound));
    }

    private static void requirePositive(String name, OptionalDouble bound) {
        if (bound.isPresent() && !(bound.getAsDouble() > 0.0 && bound.getAsDouble() < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    name + " must be positive and finite: " + name + "=" + bound.getAsDouble());
        }
    }

    /**
     * Overwrites {@code mask}, one byte per packed token: 1 if trained and its sequence is accepted, else 0.
     *
     * @param ratio current / behavior ({@link LogRatio#full}), or proximal / behavior when the batch is formed
     * @throws IllegalArgumentException if an array has another length than the batch
     * @throws NonFiniteLogProbException naming sequence and token; {@code mask} is then overwritten in part
     */
    public TrustRegionSummary compute(TokenBatch batch, LogRatio ratio, byte[] mask) {
        ratio.requireFits(batch);
        batch.requireLength("mask", mask.length);
        batch.copyMask(0, mask, 0, mask.length);
        TrustRegionSummary.Tally tally = new TrustRegionSummary.Tally(batch.sequenceCount());
        for (int s = 0; s < batch.sequenceCount(); s++) {
            int trained = batch.trainedTokens(s);
            double largest = 0.0;
            double sumOfK3 = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double logRatio = ratio.finiteAt(batch, s, t);
                    largest = Math.max(largest, Math.abs(logRatio));
                    sumOfK3 += Math.expm1(logRatio) - logRatio;
                }
            }
            boolean rejected = trained > 0
                    && (largest > maxAbsLogRatio.orElse(Double.POSITIVE_INFINITY)
                            || sumOfK3 / trained > meanK3.orElse(Double.POSITIVE_INFINITY));
            if (rejected) {
                Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
            }
            tally.add(trained, largest, sumOfK3, rejected);
        }
        return tally.summary();
    }
}
