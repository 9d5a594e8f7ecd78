package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;

/** One weight per sequence, from the product of its ratios: truncated, or kept within a band and 0 outside. */
final class SequenceWeightPass extends WeightPass {
    private final OffPolicyPass offPolicy;
    private final double[] logProduct;

    /** @param offPolicy run before this pass; it has the sums of the log ratios */
    SequenceWeightPass(TokenBatch batch, WeightRule rule, float[] weights, OffPolicyPass offPolicy) {
        super(batch, rule, weights);
        this.offPolicy = offPolicy;
        this.logProduct = new double[batch.sequenceCount()];
    }

    @Override
    public void block(TokenBlock block, int sequence) {
        // the weight is known when the sequence ends
    }

    @Override
    public void endOfSequence(int s) {
        int trained = batch.trainedTokens(s);
        logProduct[s] = offPolicy.logRatio(s);
        double bounded = LogRatio.bounded(logProduct[s]);
        double ratio = Math.exp(bounded);
        boolean above = bounded > logUpper;
        boolean below = bounded < logLower;
        double weight = isBand() ? above || below ? 0.0 : ratio : Math.min(ratio, rule.upper());
        high[s] = above ? trained : 0;
        low[s] = below ? trained : 0;
        ratioSum[s] = ratio * trained;
        weightSum[s] = weight * trained;
        weightSquares[s] = weight * weight * trained;
        float packed = (float) weight;
        for (int t = batch.start(s); t < batch.end(s); t++) {
            weights[t] = batch.isTrained(t) ? packed : 0f;
        }
    }

    @Override
    void reportRange(Semantics semantics, MetricMap metrics) {
        SequenceStatistics logs = new SequenceStatistics(batch, logProduct, semantics.countsSequence(0));
        metrics.put("rollout_is_max", Math.exp(Math.min(logs.max(), LogRatio.BOUND)));
        metrics.put("rollout_is_min", Math.exp(logs.min()));
        metrics.put("rollout_is_ratio_fraction_high", logs.fractionAbove(logUpper));
        metrics.put("rollout_is_ratio_fraction_low", logs.fractionBelow(logLower));
    }

    @Override
    double normalisationMean(Semantics semantics) {
        double[] means = new double[weightSum.length];
        for (int s = 0; s < means.length; s++) {
            int trained = batch.trainedTokens(s);
            means[s] = trained == 0 ? 0.0 : weightSum[s] / (trained + semantics.countEpsilon());
        }
        return new SequenceStatistics(batch, means, false).mean();
    }
}
