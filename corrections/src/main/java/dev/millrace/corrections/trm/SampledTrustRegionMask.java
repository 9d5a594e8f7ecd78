package dev.millrace.corrections.trm;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.RatioMask;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Map;

/**
 * Trust region mask from the sampled tokens alone: a sequence is rejected if
 * {@code max_t |log rho_t| > maxAbsLogRatio} or {@code mean_t (rho_t - 1 - log rho_t) > meanK3}.
 *
 * <p>The first is symmetric, so it sees tokens that became unlikely as well as likely ones; k3 is the unbiased
 * estimate of KL(behavior || current), but at {@code rho = 1/100} it is 26 times smaller than at {@code rho = 100},
 * which makes it fit for means and unfit for a maximum. Both are detectors: one sample says little about the
 * divergence at its context, so no error bound follows from passing. {@link ExactTrustRegionMask} gives one.
 *
 * <p>Source: arXiv 2512.23075.
 *
 * <p>Unit: sequence. A bound on the maximum rejects long sequences more often; the mean of k3 does not depend on
 * length. Bounds are inclusive. Immutable and thread-safe.
 *
 * @param maxAbsLogRatio largest {@code |log rho|}, finite; 0 for none
 * @param meanK3 largest mean k3, finite; 0 for none
 */
public record SampledTrustRegionMask(double maxAbsLogRatio, double meanK3) implements RatioMask {
    public SampledTrustRegionMask {
        requireBound("max_abs_log_ratio", maxAbsLogRatio);
        requireBound("mean_k3", meanK3);
        if (maxAbsLogRatio == 0 && meanK3 == 0) {
            throw new IllegalArgumentException(
                    "max_abs_log_ratio or mean_k3 must be above 0: a trust region needs a bound, and both are 0");
        }
    }

    /** Ratios within a factor of e^2, without a bound on their mean. */
    public static SampledTrustRegionMask defaults() {
        return byLargestLogRatio(2);
    }

    /** Rejects by the largest {@code |log rho|} of a sequence. */
    public static SampledTrustRegionMask byLargestLogRatio(double bound) {
        return new SampledTrustRegionMask(bound, 0);
    }

    static void requireBound(String key, double bound) {
        if (!(bound >= 0.0 && bound < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(key + " must be positive and finite, or 0 for no such bound: " + bound);
        }
    }

    static double orNone(double bound) {
        return bound == 0 ? Double.POSITIVE_INFINITY : bound;
    }

    @Override
    public String name() {
        return "sampled_trust_region";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    /** Compares proximal with behavior. The bound on the surrogate's error is an estimate for the kept tokens. */
    @Override
    public StageOutcome apply(StageBatch batch) {
        LogRatio ratio = batch.facts().ratio(RatioKind.ANCHOR);
        byte[] keep = new byte[batch.left().tokenCount()];
        TrustRegionSummary summary = compute(batch.left(), ratio, keep);
        Map<String, Double> values = StageSettings.of(this);
        values.put("mask_rate", summary.maskRate());
        if (summary.trainedTokens() > 0) {
            values.put("largest_abs_log_ratio", summary.largestTokenDivergence());
            values.put("mean_sequence_k3", summary.meanSequenceDivergence());
        }
        TokenBatch kept = batch.left().withMask(keep);
        if (kept.trainedTokens() > 0) {
            values.put(
                    "bound_adaptive",
                    TrustRegionBounds.adaptive(
                            PositionalTotalVariation.estimate(kept, ratio), Double.POSITIVE_INFINITY, 1));
        }
        return batch.mask(this, keep, values);
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
            boolean rejected = trained > 0 && (largest > orNone(maxAbsLogRatio) || sumOfK3 / trained > orNone(meanK3));
            if (rejected) {
                Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
            }
            tally.add(trained, largest, sumOfK3, rejected);
        }
        return tally.summary();
    }
}
