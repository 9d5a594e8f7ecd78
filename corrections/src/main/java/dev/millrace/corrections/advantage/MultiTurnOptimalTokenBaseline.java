package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import org.jspecify.annotations.Nullable;

/**
 * The optimal token baseline of multi-turn rollouts: as {@link OptimalTokenBaseline}, but the k-th trained token of a
 * trajectory is compared with the k-th trained tokens of its siblings, whatever context lies in between.
 *
 * <p>Unit: token, against the same count of trained tokens in its group. Trajectories without a trained token do not
 * count as siblings; one without siblings has baseline 0. With importance weights the variance carries their squares.
 *
 * <p>Source: verl {@code tir_optimal_token_baseline}.
 */
public final class MultiTurnOptimalTokenBaseline {
    private final boolean freesTheTail;

    /** @param freesTheTail whether a trajectory that outlives its siblings keeps its return from there on */
    public MultiTurnOptimalTokenBaseline(boolean freesTheTail) {
        this.freesTheTail = freesTheTail;
    }

    /**
     * Advantages per packed token, 0 at context tokens, and rewards to go.
     *
     * @param rewards reward per token
     * @param oldLogProbs log-probs of the sampled tokens
     * @param sumSquaredProbs per token, the sum of the squares of all probabilities of the vocabulary
     * @param weights importance weights per token, or null for none
     */
    public AdvantagesAndReturns compute(
            TokenBatch batch,
            float[] rewards,
            float[] oldLogProbs,
            float[] sumSquaredProbs,
            float @Nullable [] weights) {
        PathVariance path = new PathVariance(batch, rewards, oldLogProbs, sumSquaredProbs, weights);
        float[] advantages = new float[batch.tokenCount()];
        for (int[] members : GroupMembers.of(batch)) {
            group(batch, members, path, advantages);
        }
        float[] returns = new float[advantages.length];
        for (int t = 0; t < returns.length; t++) {
            returns[t] = (float) path.returns[t];
        }
        return new AdvantagesAndReturns(advantages, returns);
    }

    private void group(TokenBatch batch, int[] members, PathVariance path, float[] advantages) {
        int most = 0;
        int siblings = 0;
        for (int s : members) {
            most = Math.max(most, batch.trainedTokens(s));
            siblings += batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        double[] weighted = new double[most];
        double[] total = new double[most];
        int[] alive = new int[most];
        for (int s : members) {
            int k = 0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    weighted[k] += path.returns[t] * path.cumulative[t];
                    total[k] += path.cumulative[t];
                    alive[k]++;
                    k++;
                }
            }
        }
        for (int s : members) {
            int k = 0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    boolean free = siblings == 1 || freesTheTail && alive[k] == 1;
                    double baseline = free ? 0.0 : weighted[k] / (total[k] + OptimalTokenBaseline.EPSILON);
                    advantages[t] = (float) (path.returns[t] - baseline);
                    k++;
                }
            }
        }
    }
}
