package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.TokenBlock;
import java.util.Arrays;

/** One weight per token: {@code min(rho_t, upper)}, or {@code rho_t} within a band and 0 outside. */
final class TokenWeightPass extends WeightPass {
    private final double[] max;
    private final double[] min;

    TokenWeightPass(TokenBatch batch, WeightRule rule, float[] weights) {
        super(batch, rule, weights);
        this.max = new double[batch.sequenceCount()];
        this.min = new double[batch.sequenceCount()];
        Arrays.fill(max, Double.NEGATIVE_INFINITY);
        Arrays.fill(min, Double.POSITIVE_INFINITY);
    }

    @Override
    public void block(TokenBlock block, int s) {
        int above = 0;
        int below = 0;
        if (block.max() > logUpper || block.min() < logLower) {
            // in log space, where the bounded ratio is exact and its exponential is not
            above = BlockSums.countAbove(block.bounded(), block.size(), logUpper);
            below = BlockSums.countBelow(block.bounded(), block.size(), logLower);
        }
        high[s] += above;
        low[s] += below;
        ratioSum[s] += block.ratioSum();
        if (above == 0 && (below == 0 || !isBand())) {
            weightSum[s] += block.ratioSum();
            weightSquares[s] += block.ratioSquares();
            max[s] = Math.max(max[s], Math.exp(block.max()));
            min[s] = Math.min(min[s], Math.exp(block.min()));
            block.scatter(block.ratio, weights);
        } else {
            applyBounds(block, s);
        }
    }

    private void applyBounds(TokenBlock block, int s) {
        int n = block.size();
        double[] applied = block.scratch;
        if (isBand()) {
            maskOutside(block.bounded(), block.ratio, applied, n);
            max[s] = Math.max(max[s], BlockSums.max(applied, n));
            min[s] = 0.0;
        } else {
            truncate(block.ratio, applied, n, rule.upper());
            max[s] = rule.upper();
            min[s] = Math.min(min[s], Math.min(Math.exp(block.min()), rule.upper()));
        }
        weightSum[s] += BlockSums.sum(applied, n);
        weightSquares[s] += BlockSums.sumOfSquares(applied, n);
        block.scatter(applied, weights);
    }

    private static void truncate(double[] ratio, double[] applied, int n, double upper) {
        for (int i = 0; i < n; i++) {
            applied[i] = Math.min(ratio[i], upper);
        }
    }

    /** Without a branch: which tokens lie outside is what a branch predictor cannot know. */
    private void maskOutside(double[] bounded, double[] ratio, double[] applied, int n) {
        for (int i = 0; i < n; i++) {
            long outside = (Double.doubleToRawLongBits(bounded[i] - logLower + 0.0)
                            | Double.doubleToRawLongBits(logUpper - bounded[i] + 0.0))
                    >> 63; // all ones if one is below 0
            applied[i] = Double.longBitsToDouble(Double.doubleToRawLongBits(ratio[i]) & ~outside);
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
