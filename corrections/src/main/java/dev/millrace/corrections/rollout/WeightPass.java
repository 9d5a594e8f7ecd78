package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;

/**
 * Makes the importance weights while the blocks go by, and keeps per sequence what their metrics need.
 *
 * <p>The two levels differ in where a weight comes from; what is known of the weights afterwards is the same, and so
 * are most metrics.
 */
abstract class WeightPass implements BlockPass {
    final TokenBatch batch;
    final WeightRule rule;
    final float[] weights;
    final double logLower;
    final double logUpper;
    /** Sum and sum of squares of the applied weights, sum of the raw ratios (bounded, before truncation). */
    final double[] weightSum;

    final double[] weightSquares;
    final double[] ratioSum;
    /** Trained tokens whose ratio is above the upper, below the lower bound. */
    final int[] high;

    final int[] low;

    WeightPass(TokenBatch batch, WeightRule rule, float[] weights) {
        int sequences = batch.sequenceCount();
        this.batch = batch;
        this.rule = rule;
        this.weights = weights;
        this.logLower = Math.log(rule.lower());
        this.logUpper = Math.log(rule.upper());
        this.weightSum = new double[sequences];
        this.weightSquares = new double[sequences];
        this.ratioSum = new double[sequences];
        this.high = new int[sequences];
        this.low = new int[sequences];
    }

    final boolean isBand() {
        return rule instanceof WeightRule.Band;
    }

    /** Metrics that depend on the level: extremes and fractions of ratios outside the bounds. */
    abstract void reportRange(Semantics semantics, MetricMap metrics);

    /** What batch normalisation divides by. */
    abstract double normalisationMean(Semantics semantics);

    final void report(Semantics semantics, MetricMap metrics) {
        double tokens = batch.trainedTokens() + semantics.countEpsilon();
        double mean = total(weightSum) / tokens;
        double meanSquare = total(weightSquares) / tokens;
        metrics.put("rollout_is_mean", mean);
        reportRange(semantics, metrics);
        metrics.put(
                "rollout_is_std", batch.trainedTokens() > 1 ? Math.sqrt(Math.max(0.0, meanSquare - mean * mean)) : 0.0);
        metrics.put("rollout_is_eff_sample_size", effectiveSampleSize(semantics, mean, meanSquare));
        reportSequences(semantics, metrics);
        if (isBand()) {
            metrics.put("rollout_is_oob_ratio", (total(high) + total(low)) / tokens);
        }
    }

    /** {@code mean(w)^2 / mean(w^2)} over tokens, of the applied weights; in (0, 1], or 0 if every weight is 0. */
    private double effectiveSampleSize(Semantics semantics, double mean, double meanSquare) {
        if (meanSquare == 0.0) {
            if (semantics == Semantics.VERL_REFERENCE) {
                throw new IllegalArgumentException("every weight is 0: the reference divides by zero here. No ratio "
                        + "lies within " + rule.lower() + " .. " + rule.upper());
            }
            return 0.0;
        }
        double shifted = mean + semantics.countEpsilon();
        return shifted * shifted / meanSquare;
    }

    private void reportSequences(Semantics semantics, MetricMap metrics) {
        double epsilon = semantics.countEpsilon();
        double[] means = new double[weightSum.length];
        double[] rawMeans = new double[weightSum.length];
        for (int s = 0; s < means.length; s++) {
            int trained = batch.trainedTokens(s);
            means[s] = trained == 0 ? 0.0 : weightSum[s] / (trained + epsilon);
            rawMeans[s] = trained == 0 ? 0.0 : ratioSum[s] / (trained + epsilon);
        }
        SequenceStatistics applied = new SequenceStatistics(batch, means, semantics.countsSequence(0));
        SequenceStatistics raw = new SequenceStatistics(batch, rawMeans, semantics.countsSequence(0));
        metrics.put("rollout_is_seq_mean", applied.mean());
        metrics.put("rollout_is_seq_std", applied.standardDeviation());
        metrics.put("rollout_is_seq_max", applied.max());
        metrics.put("rollout_is_seq_min", applied.min());
        metrics.put("rollout_is_seq_max_deviation", applied.maxDeviation(1.0));
        metrics.put("rollout_is_seq_fraction_high", raw.fractionAbove(rule.upper()));
        metrics.put("rollout_is_seq_fraction_low", raw.fractionBelow(rule.lower()));
    }

    static double total(double[] perSequence) {
        double sum = 0;
        for (double value : perSequence) {
            sum += value;
        }
        return sum;
    }

    static long total(int[] perSequence) {
        long sum = 0;
        for (int value : perSequence) {
            sum += value;
        }
        return sum;
    }
}
