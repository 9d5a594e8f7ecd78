package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.OptionalDouble;

/**
 * Prefix weights by the least likely step so far: {@code w_t = min(rho_t * min_(i<t) rho_i, cap)}, over trained
 * tokens of the sequence; the first has {@code min(rho_1, cap)}.
 *
 * <p>What a token's gradient needs is the product of the ratios of its whole prefix, whose variance explodes. Its
 * smallest factor stands in for it: a prefix that the target would hardly have produced is discounted by its worst
 * step, without a product that grows.
 *
 * <p>Source: Lei, Cheng and Tao, "A Step Back: Prefix Importance Ratio Stabilizes Policy Optimization" (arXiv
 * 2601.22718), MinPRO. The abstract says that the cumulative prefix ratio is replaced by the minimum token ratio of
 * the preceding prefix; the reading here is that it multiplies the token's own ratio, is not itself capped at 1, and
 * that the product is capped.
 *
 * @param threshold largest weight, finite, at least 1
 * @param batchNormalize divide weights by their batch mean
 */
public record MinimumPrefixWeights(double threshold, boolean batchNormalize) implements CappedWeights {
    public MinimumPrefixWeights {
        Caps.requireThreshold(threshold);
    }

    public static MinimumPrefixWeights defaults() {
        return new MinimumPrefixWeights(2, false);
    }

    @Override
    public String name() {
        return "minpro";
    }

    @Override
    public OptionalDouble cap() {
        return OptionalDouble.of(threshold);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.PREFIX;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        ratio.requireFits(batch);
        batch.requireLength("weights", weights.length);
        double logCap = Caps.logOfCap(threshold);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            double least = Double.POSITIVE_INFINITY; // of an empty prefix; stands for the factor 1
            for (int t = batch.start(s); t < batch.end(s); t++) {
                weights[t] = 0f;
                if (batch.isTrained(t)) {
                    double own = ratio.finiteAt(batch, s, t);
                    weights[t] = (float) tally.capped(least == Double.POSITIVE_INFINITY ? own : own + least, logCap, 1);
                    least = Math.min(least, own);
                }
            }
        }
        return tally.summary();
    }
}
