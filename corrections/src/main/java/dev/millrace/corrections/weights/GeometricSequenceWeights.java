package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.OptionalDouble;

/**
 * Length-normalised importance weights, one per sequence: {@code w_s = min((prod_t rho_t)^(1/n), cap)}, the geometric
 * mean of the ratios of its n trained tokens.
 *
 * <p>Does not grow with the length, so one cap serves all lengths; but it is no importance weight of anything, and
 * biased accordingly: a sequence of 1000 tokens that is e times less likely gets 0.999 instead of 0.37.
 *
 * <p>Source: Zheng et al., "Group Sequence Policy Optimization" (arXiv 2507.18071), the sequence ratio s_i.
 *
 * @param threshold largest weight, finite, at least 1
 * @param batchNormalize divide weights by their batch mean
 */
public record GeometricSequenceWeights(double threshold, boolean batchNormalize) implements CappedWeights {
    public GeometricSequenceWeights {
        Caps.requireThreshold(threshold);
    }

    /** Not normalised. */
    public GeometricSequenceWeights(double threshold) {
        this(threshold, false);
    }

    /** Truncated at 2. */
    public static GeometricSequenceWeights defaults() {
        return new GeometricSequenceWeights(2);
    }

    @Override
    public String name() {
        return "geometric_sequence";
    }

    @Override
    public OptionalDouble cap() {
        return OptionalDouble.of(threshold);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        ratio.requireFits(batch);
        batch.requireLength("weights", weights.length);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            int trained = batch.trainedTokens(s);
            double logMean = trained == 0 ? 0.0 : SequenceSums.logRatio(batch, ratio, s) / trained;
            double weight = Math.exp(LogRatio.bounded(Math.min(logMean, Caps.logOfCap(threshold))));
            if (logMean > Caps.logOfCap(threshold)) {
                tally.truncated(weight, trained);
            } else {
                tally.kept(weight, trained);
            }
            SequenceSums.spread(batch, s, (float) weight, weights);
        }
        return tally.summary();
    }
}
