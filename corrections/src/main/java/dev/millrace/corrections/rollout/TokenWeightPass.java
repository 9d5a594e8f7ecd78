package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;

/** One weight per token: {@code min(rho_t, upper)}, or {@code rho_t} within a band and 0 outside. */
final class TokenWeightPass extends WeightPass {
    /** Logs of the largest and the smallest weight. */
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
        int n = block.size();
        int above = 0;
        int below = 0;
        if (block.max() > logUpper || block.min() < logLower) {
            double[] bounded = block.bounded(); // in log space, where it is exact; its exponential is not
            for (int i = 0; i < n; i++) {
                above += bounded[i] > logUpper ? 1 : 0;
                below += bounded[i] < logLower ? 1 : 0;
            }
        }
        high[s] += above;
        low[s] += below;
        ratioSum[s] += block.ratioSum();
        if (above == 0 && (below == 0 || !isBand())) {
            weightSum[s] += block.ratioSum();
            weightSquares[s] += block.ratioSquares();
            max[s] = Math.max(max[s], block.max());
            min[s] = Math.min(min[s], block.min());
            block.scatter(block.ratio, weights);
        } else {
            applyBounds(block, s);
        }
    }

    private void applyBounds(TokenBlock block, int s) {
        int n = block.size();
        double[] applied = block.scratch;
        if (isBand()) {
            maskOutside(block, applied, s);
        } else {
            truncate(block.ratio, applied, n, rule.upper());
            max[s] = logUpper;
            min[s] = Math.min(min[s], Math.min(block.min(), logUpper));
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

    private void maskOutside(TokenBlock block, double[] applied, int s) {
        double[] bounded = block.bounded();
        for (int i = 0; i < block.size(); i++) {
            double l = bounded[i];
            boolean kept = l >= logLower && l <= logUpper;
            applied[i] = kept ? block.ratio[i] : 0.0;
            max[s] = kept ? Math.max(max[s], l) : max[s];
        }
        min[s] = Double.NEGATIVE_INFINITY; // the log of a weight of 0
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
        metrics.put("rollout_is_max", weight(new SequenceStatistics(batch, max, false).max()));
        metrics.put("rollout_is_min", weight(new SequenceStatistics(batch, min, false).min()));
    }

    /** {@code e^log}, but the bound itself where the log is the bound's. */
    private double weight(double log) {
        return log == logUpper ? rule.upper() : Math.exp(log);
    }

    @Override
    double normalisationMean(Semantics semantics) {
        return total(weightSum) / (batch.trainedTokens() + semantics.countEpsilon());
    }
}
