package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;

/**
 * Advantage for pass@k: in each group only the best sequence has one, its lead over the second best,
 * {@code r_max − r_second}, divided by {@code std + 1e-6} if asked for.
 *
 * <p>Unit: sequence, against its group. The standard deviation is the sample's. Where two sequences share the largest
 * reward the lead is 0, so nobody has an advantage. A group of one is refused: it has no second.
 *
 * <p>Source: arXiv 2503.19595; verl {@code grpo_passk}.
 *
 * @param divideByStd divide by the group's standard deviation
 */
public record GrpoPassk(boolean divideByStd) implements OutcomeAdvantage {

    /** Divided, as in verl. */
    public static GrpoPassk defaults() {
        return new GrpoPassk(true);
    }

    @Override
    public int leastGroup() {
        return 2;
    }

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        batch.requireFinitePerSequence("rewards", rewards);
        GroupMoments moments = GroupMoments.of(batch, rewards);
        int[] best = new int[batch.groupCount()];
        Arrays.fill(best, -1);
        double[] second = new double[batch.groupCount()];
        Arrays.fill(second, Double.NEGATIVE_INFINITY);
        for (int s = 0; s < rewards.length; s++) {
            int group = batch.group(s);
            if (moments.size(group) < 2) {
                throw new IllegalArgumentException(
                        "pass@k needs at least 2 sequences in a group: sequence=" + s + ", group=" + group);
            }
            if (best[group] < 0 || rewards[s] > rewards[best[group]]) {
                second[group] = best[group] < 0 ? second[group] : rewards[best[group]];
                best[group] = s;
            } else {
                second[group] = Math.max(second[group], rewards[s]);
            }
        }
        double[] advantages = new double[rewards.length];
        for (int group = 0; group < best.length; group++) {
            if (best[group] >= 0) {
                double lead = rewards[best[group]] - second[group];
                double scale = divideByStd ? moments.standardDeviation(group) + Grpo.EPSILON : 1.0;
                advantages[best[group]] = lead / scale;
            }
        }
        return advantages;
    }
}
