package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import java.util.function.IntToDoubleFunction;

/**
 * Accumulates per sequence the sums behind KL, perplexities and chi-square of target against sampler.
 *
 * <p>The metrics are verl's {@code compute_offpolicy_metrics}, by name:
 * <ul>
 *   <li>{@code kl} = mean(sampler - target), {@code k3_kl} = mean(rho - 1 - log rho), over tokens; the ratio in k3 is
 *       not bounded;
 *   <li>means over sequences: {@code training_ppl} of exp(-mean target), {@code rollout_ppl} of exp(-mean sampler),
 *       {@code *_log_ppl} of their logs; {@code log_ppl_diff} of mean sampler - mean target, {@code ppl_ratio} of its
 *       exponential;
 *   <li>{@code chi2_token} = mean(rho^2) - 1 over tokens, {@code chi2_seq} = mean((prod rho)^2) - 1 over sequences,
 *       both with logs bounded to 20.
 * </ul>
 */
final class OffPolicyPass implements BlockPass {
    private final TokenBatch batch;
    private final double[] target;
    private final double[] sampler;
    private final double[] logRatio;
    private final double[] k3;
    private final double[] ratioSquares;

    OffPolicyPass(TokenBatch batch) {
        int sequences = batch.sequenceCount();
        this.batch = batch;
        this.target = new double[sequences];
        this.sampler = new double[sequences];
        this.logRatio = new double[sequences];
        this.k3 = new double[sequences];
        this.ratioSquares = new double[sequences];
    }

    @Override
    public void block(TokenBlock block, int s) {
        target[s] += block.targetSum();
        sampler[s] += block.samplerSum();
        logRatio[s] += block.logRatioSum();
        k3[s] += BlockSums.sum(block.k3, block.size());
        ratioSquares[s] += block.ratioSquares();
        if (block.beyondBound()) {
            k3[s] += unboundedLessBoundedK3(block);
        }
    }

    private static double unboundedLessBoundedK3(TokenBlock block) {
        double difference = 0;
        double[] bounded = block.bounded();
        for (int i = 0; i < block.size(); i++) {
            double l = block.logRatio[i];
            if (l != bounded[i]) {
                difference += Math.expm1(l) - l - block.k3[i];
            }
        }
        return difference;
    }

    /** Sum of the log ratios of a sequence, unbounded. */
    double logRatio(int sequence) {
        return logRatio[sequence];
    }

    void report(Semantics semantics, MetricMap metrics) {
        double epsilon = semantics.countEpsilon();
        double tokens = batch.trainedTokens() + epsilon;
        SequenceStatistics logPpl = perSequence(semantics, s -> -target[s] / count(s, epsilon));
        metrics.put(
                "training_ppl",
                perSequence(semantics, s -> Math.exp(-target[s] / count(s, epsilon)))
                        .mean());
        metrics.put("training_log_ppl", logPpl.mean());
        metrics.put("kl", (0.0 - WeightPass.total(logRatio)) / tokens); // not -0 on-policy
        metrics.put("k3_kl", WeightPass.total(k3) / tokens);
        metrics.put(
                "rollout_ppl",
                perSequence(semantics, s -> Math.exp(-sampler[s] / count(s, epsilon)))
                        .mean());
        metrics.put(
                "rollout_log_ppl",
                perSequence(semantics, s -> -sampler[s] / count(s, epsilon)).mean());
        SequenceStatistics difference = perSequence(semantics, s -> (0.0 - logRatio[s]) / count(s, epsilon));
        metrics.put("log_ppl_diff", difference.mean());
        metrics.put(
                "log_ppl_abs_diff",
                perSequence(semantics, s -> Math.abs(logRatio[s]) / count(s, epsilon))
                        .mean());
        metrics.put("log_ppl_diff_max", difference.max());
        metrics.put("log_ppl_diff_min", difference.min());
        metrics.put(
                "ppl_ratio",
                perSequence(semantics, s -> Math.exp(-logRatio[s] / count(s, epsilon)))
                        .mean());
        metrics.put("chi2_token", WeightPass.total(ratioSquares) / tokens - 1.0);
        metrics.put(
                "chi2_seq",
                perSequence(semantics, s -> Math.exp(2.0 * LogRatio.bounded(logRatio[s])))
                                .mean()
                        - 1.0);
    }

    /** A sequence without trained tokens has sums of 0, so its quotients are 0 for any divisor. */
    private double count(int s, double epsilon) {
        int trained = batch.trainedTokens(s);
        return trained == 0 ? 1.0 : trained + epsilon;
    }

    private SequenceStatistics perSequence(Semantics semantics, IntToDoubleFunction value) {
        double[] values = new double[target.length];
        for (int s = 0; s < values.length; s++) {
            values[s] = value.applyAsDouble(s);
        }
        return new SequenceStatistics(batch, values, semantics.countsSequence(0));
    }
}
