package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import java.util.Arrays;

/** Rejects the sequences whose sum, mean or maximum of divergences is outside the bounds. */
final class SequenceRejectionPass extends RejectionPass {
    private final LogRatio ratio;
    private final RejectionAggregation aggregation;
    private final double epsilon;
    private final double[] statistic;

    SequenceRejectionPass(TokenBatch batch, LogRatio ratio, RejectionRule rule, Semantics semantics, byte[] mask) {
        super(batch, rule, mask);
        this.ratio = ratio;
        this.aggregation = rule.aggregation();
        this.epsilon = semantics.countEpsilon();
        this.statistic = new double[batch.sequenceCount()];
        if (aggregation == RejectionAggregation.MAX) {
            Arrays.fill(statistic, Double.NEGATIVE_INFINITY);
        }
    }

    @Override
    public void block(TokenBlock block, int s) {
        int n = block.size();
        boolean k3 = rule.divergence() == RejectionDivergence.K3;
        double[] divergences = k3 ? block.k3 : divergences(block);
        if (aggregation == RejectionAggregation.MAX) {
            statistic[s] = Math.max(statistic[s], BlockSums.max(divergences, n));
        } else {
            statistic[s] += BlockSums.sum(divergences, n);
        }
    }

    @Override
    public void endOfSequence(int s) {
        if (batch.trainedTokens(s) == 0) {
            statistic[s] = 0.0;
            return;
        }
        statistic[s] = aggregated(statistic[s], s);
        if (rule.divergence() == RejectionDivergence.K3 && isNear(statistic[s])) {
            statistic[s] = aggregated(exact(s), s);
        }
        if (!rule.keeps(statistic[s])) {
            rejected[s] = batch.trainedTokens(s);
            Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
        }
    }

    private double aggregated(double sumOrMax, int s) {
        return aggregation == RejectionAggregation.MEAN ? sumOrMax / (batch.trainedTokens(s) + epsilon) : sumOrMax;
    }

    private double exact(int s) {
        double sum = 0;
        double max = Double.NEGATIVE_INFINITY;
        for (int t = batch.start(s); t < batch.end(s); t++) {
            if (batch.isTrained(t)) {
                double k3 = RejectionDivergence.K3.of(ratio.boundedAt(t));
                sum += k3;
                max = Math.max(max, k3);
            }
        }
        return aggregation == RejectionAggregation.MAX ? max : sum;
    }

    @Override
    void reportStatistic(Semantics semantics, String name, MetricMap metrics) {
        double tokens = batch.trainedTokens() + semantics.countEpsilon();
        double sum = 0;
        double clampedSum = 0;
        double clampedSquares = 0;
        for (int s = 0; s < statistic.length; s++) {
            int trained = batch.trainedTokens(s);
            double clamped = clamped(statistic[s]);
            sum += trained * statistic[s];
            clampedSum += trained * clamped;
            clampedSquares += trained * clamped * clamped;
        }
        SequenceStatistics statistics = new SequenceStatistics(batch, statistic, false);
        double mean = clampedSum / tokens;
        double variance = clampedSquares / tokens - mean * mean;
        metrics.put(name + "_mean", sum / tokens);
        metrics.put(name + "_max", statistics.max());
        metrics.put(name + "_min", statistics.min());
        metrics.put(name + "_fraction_high", statistics.fractionAbove(rule.max()));
        metrics.put(name + "_fraction_low", fractionLow(statistics.fractionBelow(rule.min())));
        metrics.put(name + "_std", batch.trainedTokens() > 1 ? Math.sqrt(Math.max(0.0, variance)) : 0.0);
        reportSequences(statistics, name, metrics);
    }
}
