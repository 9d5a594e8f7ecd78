package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/**
 * GRPO's advantage: the reward against its group, {@code (r − mean) / (std + 1e-6)}, or {@code r − mean} alone.
 *
 * <p>Unit: sequence, against its group. The standard deviation is the sample's (n − 1). Dividing by it makes easy and
 * hard prompts weigh alike and lets a group whose rewards differ by noise shout as loud as any other; Dr. GRPO leaves
 * it out. A group of one has no baseline: its advantage is its reward, undivided but for the 1e-6, as in verl.
 *
 * <p>Source: Shao et al. 2024 (arXiv 2402.03300); without the division: Liu et al. 2025 (arXiv 2503.20783).
 *
 * @param divideByStd divide by the group's standard deviation
 */
public record Grpo(boolean divideByStd) implements OutcomeAdvantage {
    static final double EPSILON = 1e-6;

    /** Not divided, as in Dr. GRPO. */
    public static Grpo defaults() {
        return new Grpo(false);
    }

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        batch.requireFinitePerSequence("rewards", rewards);
        GroupMoments moments = GroupMoments.of(batch, rewards);
        double[] advantages = new double[rewards.length];
        for (int s = 0; s < rewards.length; s++) {
            int group = batch.group(s);
            boolean alone = moments.size(group) == 1;
            double centred = alone ? rewards[s] : rewards[s] - moments.mean(group);
            double deviation = alone ? 1.0 : moments.standardDeviation(group);
            advantages[s] = divideByStd ? centred / (deviation + EPSILON) : centred;
        }
        return advantages;
    }
}
