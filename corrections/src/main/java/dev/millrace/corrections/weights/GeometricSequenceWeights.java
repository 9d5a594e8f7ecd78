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

    public static GeometricSequenceWeights defaults() {
        return new GeometricSequenceWeights(2, false);
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
        double logCap = Caps.logOfCap(threshold);
        return WeightTally.perSequence(batch, ratio, weights, (tally, logRatio, sequence) -> {
            int trained = batch.trainedTokens(sequence);
            return tally.capped(trained == 0 ? 0.0 : logRatio / trained, logCap, trained);
        });
    }
}
