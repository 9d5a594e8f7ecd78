package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/**
 * RLOO: the reward against the mean of its siblings, {@code r − mean of the others = n/(n−1) · (r − mean)}.
 *
 * <p>Unit: sequence, against its group. The baseline does not contain the sequence itself, so the gradient is unbiased
 * at every group size.
 *
 * <p>Source: Ahmadian et al. 2024 (arXiv 2402.14740). For a group of one, verl's {@code rloo} keeps the reward and its
 * {@code rloo_vectorized} gives 0.
 *
 * @param lone treatment of a group of one
 */
public record Rloo(LoneSequence lone) implements OutcomeAdvantage {

    /** A group of one keeps its reward. */
    public static Rloo defaults() {
        return new Rloo(LoneSequence.KEEPS_ITS_REWARD);
    }

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        batch.requireFinitePerSequence("rewards", rewards);
        GroupMoments moments = GroupMoments.of(batch, rewards);
        double[] advantages = new double[rewards.length];
        for (int s = 0; s < rewards.length; s++) {
            int group = batch.group(s);
            double size = moments.size(group);
            if (size > 1) {
                advantages[s] = size / (size - 1) * (rewards[s] - moments.mean(group));
            } else {
                advantages[s] = lone == LoneSequence.KEEPS_ITS_REWARD ? rewards[s] : 0.0;
            }
        }
        return advantages;
    }
}
