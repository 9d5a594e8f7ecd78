package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;

/** One weight per token: {@code min(rho_t, upper)}, or {@code rho_t} within a band and 0 outside. */
final class TokenWeightPass extends WeightPass {
    private final double[] max;
    private final double[] min;

    TokenWeightPass(TokenBatch batch, WeightRule rule, float[] weights) {
        super(batch, rule, weights);
        this.max = new double[batch.sequenceCount()];
        this.min = new double[batch.sequenceCount()];
        java.util.Arrays.fill(max, Double.NEGATIVE_INFINITY);
        java.util.Arrays.fill(min, Double.POSITIVE_INFINITY);
    }

    @Override
    public void block(TokenBlock block, int s) {
        int n = block.size();
        double[] applied = block.scratch;
        // in log space, where the bounded log ratio is exact and its exponential is not
        high[s] += BlockSums.countAbove(block.bounded, n, logUpper);
        low[s] += BlockSums.countBelow(block.bounded, n, logLower);
        if (isBand()) {
            maskOutside(block, applied, n);
        } else {
            truncate(block.ratio, applied, n, rule.upper());
        }
        weightSum[s] += BlockSums.sum(applied, n);
        weightSquares[s] += BlockSums.sumOfSquares(applied, n);
        ratioSum[s] += BlockSums.sum(block.ratio, n);
        max[s] = Math.max(max[s], BlockSums.max(applied, n));
        min[s] = Math.min(min[s], BlockSums.min(applied, n));
        block.scatter(applied, weights);
    }

    private static void truncate(double[] ratio, double[] applied, int n, double upper) {
        for (int i = 0; i < n; i++) {
            applied[i] = Math.min(ratio[i], upper);
        }
    }

    private void maskOutside(TokenBlock block, double[] applied, int n) {
        for (int i = 0; i < n; i++) {
            double l = block.bounded[i];
            applied[i] = l >= logLower && l <= logUpper ? block.ratio[i] : 0.0;
        }
    }

    @Override
    public void endOfSequence(int sequence) {
        // weights are written block by block
    }

    @Override
    void reportRange(Semantics semantics, MetricMap metrics) {
        double tokens = batch.trainedTokens() + semantics.countEpsilon();
        metrics.put("rollout_is_ratio_fraction_high", total(high) / tokens);
        metrics.put("rollout_is_ratio_fraction_low", total(low) / tokens);
        metrics.put("rollout_is_max", new SequenceStatistics(batch, max, false).max());
        metrics.put("rollout_is_min", new SequenceStatistics(batch, min, false).min());
    }

    @Override
    double normalisationMean(Semantics semantics) {
        return total(weightSum) / (batch.trainedTokens() + semantics.countEpsilon());
    }
}
