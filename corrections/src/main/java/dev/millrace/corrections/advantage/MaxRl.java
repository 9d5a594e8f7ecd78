package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/**
 * MaxRL's advantage: the reward against its group in units of the group's success, {@code (r − mean) / mean}.
 *
 * <p>With rewards 0 and 1 the mean is the share of successes, so the rarer a success, the more it counts. This follows
 * the log-likelihood of success rather than its probability. A group whose mean is not above 0 has no success to
 * measure by and gives no training signal, and neither does a group of one. Rewards are expected to be at least 0.
 *
 * <p>Unit: sequence, against its group. Source: arXiv 2602.02710.
 */
public record MaxRl() implements OutcomeAdvantage {

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        batch.requireFinitePerSequence("rewards", rewards);
        GroupMoments moments = GroupMoments.of(batch, rewards);
        double[] advantages = new double[rewards.length];
        for (int s = 0; s < rewards.length; s++) {
            double mean = moments.mean(batch.group(s));
            advantages[s] = mean > 0 ? (rewards[s] - mean) / mean : 0.0;
        }
        return advantages;
    }
}
