package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.TokenBlock;
import java.util.Arrays;

/** Rejects the tokens whose own divergence is outside the bounds. */
final class TokenRejectionPass extends RejectionPass {
    private final double[] sum;
    private final double[] clampedSum;
    private final double[] clampedSquares;
    private final double[] max;
    private final double[] min;
    private final int[] high;
    private final int[] low;

    TokenRejectionPass(TokenBatch batch, RejectionRule rule, byte[] mask) {
        super(batch, rule, mask);
        int sequences = batch.sequenceCount();
        this.sum = new double[sequences];
        this.clampedSum = new double[sequences];
        this.clampedSquares = new double[sequences];
        this.max = new double[sequences];
        this.min = new double[sequences];
        this.high = new int[sequences];
        this.low = new int[sequences];
        Arrays.fill(max, Double.NEGATIVE_INFINITY);
        Arrays.fill(min, Double.POSITIVE_INFINITY);
    }

    @Override
    public void block(TokenBlock block, int s) {
        int n = block.size();
        double[] statistic = divergences(block);
        if (rule.divergence() == RejectionDivergence.K3) {
            decideExactly(block, statistic, n);
        }
        sum[s] += BlockSums.sum(statistic, n);
        max[s] = Math.max(max[s], BlockSums.max(statistic, n));
        min[s] = Math.min(min[s], BlockSums.min(statistic, n));
        int above = BlockSums.countAbove(statistic, n, rule.max());
        int below = BlockSums.countBelow(statistic, n, rule.min());
        int outside = rule.isTwoSided() ? above + below : above;
        high[s] += above;
        low[s] += below;
        rejected[s] += outside;
        if (outside > 0) {
            block.clearWhere(statistic, rule, mask);
        }
        for (int i = 0; i < n; i++) {
            statistic[i] = clamped(statistic[i]);
        }
        clampedSum[s] += BlockSums.sum(statistic, n);
        clampedSquares[s] += BlockSums.sumOfSquares(statistic, n);
    }

    private void decideExactly(TokenBlock block, double[] statistic, int n) {
        for (int i = 0; i < n; i++) {
            if (isNear(statistic[i])) {
                statistic[i] = RejectionDivergence.K3.of(block.bounded()[i]);
            }
        }
    }

    @Override
    public void endOfSequence(int sequence) {
        // the mask is cleared block by block
    }

    @Override
    void reportStatistic(Semantics semantics, String name, MetricMap metrics) {
        double tokens = batch.trainedTokens() + semantics.countEpsilon();
        metrics.put(name + "_mean", WeightPass.total(sum) / tokens);
        metrics.put(name + "_max", new SequenceStatistics(batch, max, false).max());
        metrics.put(name + "_min", new SequenceStatistics(batch, min, false).min());
        metrics.put(name + "_fraction_high", WeightPass.total(high) / tokens);
        metrics.put(name + "_fraction_low", fractionLow(WeightPass.total(low) / tokens));
        double mean = WeightPass.total(clampedSum) / tokens;
        double variance = WeightPass.total(clampedSquares) / tokens - mean * mean;
        metrics.put(name + "_std", batch.trainedTokens() > 1 ? Math.sqrt(Math.max(0.0, variance)) : 0.0);
        double[] means = new double[sum.length];
        for (int s = 0; s < means.length; s++) {
            means[s] = sum[s] / (batch.trainedTokens(s) + semantics.countEpsilon());
        }
        reportSequences(new SequenceStatistics(batch, means, false), name, metrics);
    }
}
