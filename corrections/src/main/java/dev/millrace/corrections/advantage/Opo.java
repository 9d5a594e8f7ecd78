package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/**
 * OPO: the reward against the length-weighted mean of its group, {@code r − Σ n_i r_i / Σ n_i}, {@code n_i} trained
 * tokens.
 *
 * <p>Unit: sequence, against its group. Under the assumption that the squared norm of a sequence's score grows with its
 * length this is the baseline of least variance. A group of one has no baseline: its advantage is its reward. A group
 * without any trained token has baseline 0, and no token the advantage could act on.
 *
 * <p>Source: arXiv 2505.23585.
 */
public record Opo() implements OutcomeAdvantage {

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        batch.requireFinitePerSequence("rewards", rewards);
        double[] weighted = new double[batch.groupCount()];
        long[] tokens = new long[batch.groupCount()];
        int[] sizes = new int[batch.groupCount()];
        for (int s = 0; s < rewards.length; s++) {
            int group = batch.group(s);
            weighted[group] += batch.trainedTokens(s) * rewards[s];
            tokens[group] += batch.trainedTokens(s);
            sizes[group]++;
        }
        double[] advantages = new double[rewards.length];
        for (int s = 0; s < rewards.length; s++) {
            int group = batch.group(s);
            boolean hasBaseline = sizes[group] > 1 && tokens[group] > 0;
            advantages[s] = hasBaseline ? rewards[s] - weighted[group] / tokens[group] : rewards[s];
        }
        return advantages;
    }
}
