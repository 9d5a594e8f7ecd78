package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;
import java.util.Comparator;

/**
 * Pass@k as the reward, {@code A_i = mean_(D with i) max_D r − mean_D max_D r}: draws D of k samples from a group are rewarded
 * by their best, and a sample's advantage is the mean reward of the draws that it is in, less that of all draws.
 *
 * <p>Nothing is drawn: both means are over all subsets of size k, by rank. With k = 1 this is the reward against the group's
 * mean; a larger k lets a group explore, since one success among k is enough, and gives easy prompts less to learn from. Divided
 * by the standard deviation of the reward of a draw, if asked for; where all draws are rewarded alike, all advantages are 0.
 *
 * <p>Unit: sequence, against its group, which must have at least k members. Source: arXiv 2508.10751 (analytical derivation,
 * for rewards 0 and 1); here for any rewards.
 *
 * @param k samples per draw, at least 1
 * @param divideByStd divide by the standard deviation of a draw's reward
 */
public record PassAtKAdvantage(int k, boolean divideByStd) implements OutcomeAdvantage {
    public PassAtKAdvantage {
        if (k < 1) {
            throw new IllegalArgumentException("k must be at least 1: " + k);
        }
    }

    /** Draws of 4, not divided. */
    public static PassAtKAdvantage defaults() {
        return new PassAtKAdvantage(4, false);
    }

    @Override
    public String name() {
        return "pass_at_k";
    }

    @Override
    public int leastGroup() {
        return k;
    }

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        batch.requireFinitePerSequence("rewards", rewards);
        double[] advantages = new double[rewards.length];
        int[][] groups = GroupMembers.of(batch);
        for (int g = 0; g < groups.length; g++) {
            if (groups[g].length > 0) {
                if (groups[g].length < k) {
                    throw new IllegalArgumentException("pass@k needs groups of at least k sequences: group=" + g
                            + ", sequences=" + groups[g].length + ", k=" + k);
                }
                group(groups[g], rewards, advantages);
            }
        }
        return advantages;
    }

    private void group(int[] members, double[] rewards, double[] advantages) {
        int n = members.length;
        Integer[] ranked = Arrays.stream(members).boxed().toArray(Integer[]::new);
        Arrays.sort(ranked, Comparator.comparingDouble(s -> rewards[s]));
        double mean = 0;
        double square = 0;
        for (int i = 0; i < n; i++) { // the best of a draw is rank i if the others are below it
            double share = share(i, k - 1, n, k);
            mean += share * rewards[ranked[i]];
            square += share * rewards[ranked[i]] * rewards[ranked[i]];
        }
        double deviation = Math.sqrt(Math.max(0, square - mean * mean));
        boolean alike = rewards[ranked[0]] == rewards[ranked[n - 1]];
        for (int i = 0; i < n; i++) {
            double with = share(i, k - 1, n - 1, k - 1) * rewards[ranked[i]];
            for (int j = i + 1; j < n; j++) { // rank j is in, and the best; i is in and below it
                with += share(j - 1, k - 2, n - 1, k - 1) * rewards[ranked[j]];
            }
            double lead = alike ? 0 : with - mean;
            advantages[ranked[i]] = divideByStd ? lead / (deviation + Grpo.EPSILON) : lead;
        }
    }

    /** {@code C(from, drawn) / C(all, size)}, in log space. */
    private static double share(int from, int drawn, int all, int size) {
        if (drawn < 0 || drawn > from) {
            return 0;
        }
        return Math.exp(logChoose(from, drawn) - logChoose(all, size));
    }

    private static double logChoose(int n, int k) {
        double log = 0;
        for (int i = 1; i <= Math.min(k, n - k); i++) {
            log += Math.log((double) (n - i + 1) / i);
        }
        return log;
    }
}
