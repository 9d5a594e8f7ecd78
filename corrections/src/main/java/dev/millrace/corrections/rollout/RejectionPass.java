package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.TokenBlock;

/**
 * Applies one rejection rule while the blocks go by: clears mask elements, and keeps per sequence what the metrics
 * need.
 *
 * <p>The block's k3 has a relative error of 1e-14, which could decide for a statistic that lies on its bound. So a
 * statistic next to its bound is computed again the exact way, and masks are those of the plain loop, bit for bit.
 */
abstract class RejectionPass implements BlockPass {
    /** Relative distance from a bound within which the vector code is not trusted to decide. */
    static final double NEAR = 1e-9;

    final TokenBatch batch;
    final RejectionRule rule;
    final byte[] mask;
    /** Trained tokens this rule rejects. */
    final int[] rejected;

    RejectionPass(TokenBatch batch, RejectionRule rule, byte[] mask) {
        this.batch = batch;
        this.rule = rule;
        this.mask = mask;
        this.rejected = new int[batch.sequenceCount()];
    }

    /** Writes the rule's divergence of every token of the block to its scratch array. */
    final double[] divergences(TokenBlock block) {
        int n = block.size();
        double[] out = block.scratch;
        double[] l = block.bounded();
        RejectionDivergence divergence = rule.divergence();
        switch (divergence) {
            case K1 -> {
                for (int i = 0; i < n; i++) {
                    out[i] = -l[i];
                }
            }
            case K2 -> {
                for (int i = 0; i < n; i++) {
                    out[i] = 0.5 * l[i] * l[i];
                }
            }
            case K3 -> System.arraycopy(block.k3, 0, out, 0, n);
        }
        return out;
    }

    final boolean isNear(double statistic) {
        return Math.abs(statistic - rule.max()) <= NEAR * Math.abs(rule.max())
                || rule.isTwoSided() && Math.abs(statistic - rule.min()) <= NEAR * Math.abs(rule.min());
    }

    /** The level's own metrics, all but the rejected fractions. */
    abstract void reportStatistic(Semantics semantics, String name, MetricMap metrics);

    final void report(Semantics semantics, MetricMap metrics) {
        String name = "rollout_rs_" + rule.label();
        reportStatistic(semantics, name, metrics);
        metrics.put(
                name + "_masked_fraction",
                WeightPass.total(rejected) / (batch.trainedTokens() + semantics.countEpsilon()));
        double[] touched = new double[rejected.length];
        for (int s = 0; s < touched.length; s++) {
            touched[s] = rejected[s] > 0 ? 1.0 : 0.0;
        }
        metrics.put(name + "_seq_masked_fraction", new SequenceStatistics(batch, touched, false).mean());
    }

    /** Metrics of one statistic per sequence, over the sequences that have a trained token. */
    final void reportSequences(SequenceStatistics statistics, String name, MetricMap metrics) {
        metrics.put(name + "_seq_mean", statistics.mean());
        metrics.put(name + "_seq_std", statistics.standardDeviation());
        metrics.put(name + "_seq_max", statistics.max());
        metrics.put(name + "_seq_min", statistics.min());
        metrics.put(name + "_seq_max_deviation", statistics.maxDeviation(0.0));
        metrics.put(name + "_seq_fraction_high", statistics.fractionAbove(rule.max()));
        if (rule.isTwoSided()) {
            metrics.put(name + "_seq_fraction_low", statistics.fractionBelow(rule.min()));
        }
    }

    final double fractionLow(double low) {
        return rule.isTwoSided() ? low : 0.0;
    }

    /** The statistic moved into the rule's interval; k2 and k3 have 0 as the lower end. */
    final double clamped(double statistic) {
        return Math.min(Math.max(statistic, rule.min()), rule.max());
    }
}
