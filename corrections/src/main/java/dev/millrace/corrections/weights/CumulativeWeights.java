package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Cumulative prefix weights in a band that widens with the position: {@code w_t = prod_(i<=t) rho_i}, truncated to
 * {@code [e^(-low sqrt(t)), e^(high sqrt(t))]}, where t counts the trained tokens of the sequence from 1.
 *
 * <p>The product over the prefix is the exact correction of a token's gradient, with less variance than that of the
 * whole sequence. Its log is a random walk, which wanders like sqrt(t); bounds that do the same are as strict at the
 * end of a sequence as at its beginning. Both sides are truncated: a weight below the band is raised to it.
 *
 * <p>Source: Zhang et al., "Rethinking Importance Sampling in LLM Policy Optimization: A Cumulative Token Perspective"
 * (arXiv 2605.07331), CTPO; its defaults are 0.025 and 0.05. There the band clips an objective, which is
 * {@code objective: ctpo}; here it truncates a weight that is not differentiated.
 *
 * @param low decline of the log lower bound, positive, finite
 * @param high rise of the log upper bound, positive, finite
 * @param batchNormalize divide weights by their batch mean
 */
public record CumulativeWeights(double low, double high, boolean batchNormalize) implements CappedWeights {
    public CumulativeWeights {
        if (!(low > 0 && low < Double.POSITIVE_INFINITY && high > 0 && high < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "low and high must be positive and finite: low=" + low + ", high=" + high);
        }
    }

    /** Those of the source: 0.025 below, 0.05 above. */
    public static CumulativeWeights defaults() {
        return new CumulativeWeights(0.025, 0.05, false);
    }

    @Override
    public String name() {
        return "ctpo";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.PREFIX;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        ratio.requireFits(batch);
        batch.requireLength("weights", weights.length);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            double logProduct = 0.0;
            int position = 0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                weights[t] = 0f;
                if (batch.isTrained(t)) {
                    logProduct += ratio.finiteAt(batch, s, t);
                    weights[t] = (float) weight(logProduct, Math.sqrt(++position), tally);
                }
            }
        }
        return tally.summary();
    }

    private double weight(double logProduct, double width, WeightTally tally) {
        double inBand = Math.max(-low * width, Math.min(high * width, logProduct));
        double weight = Math.exp(LogRatio.bounded(inBand));
        return inBand == logProduct ? tally.kept(weight, 1) : tally.truncated(weight, 1);
    }
}
