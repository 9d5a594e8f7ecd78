package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import java.util.Arrays;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The optimal token baseline of multi-turn rollouts: {@code A_{i,k} = G_{i,k} − Σ_j W_{j,k} G_{j,k} / Σ_j W_{j,k}}.
 * Unlike {@link OptimalTokenBaseline}, it compares the k-th trained token of a trajectory with the k-th trained tokens of its
 * siblings, regardless of the context in between.
 *
 * <p>Unit: token, against the same count of trained tokens in its group. Trajectories without a trained token do not
 * count as siblings; one without siblings has baseline 0. With importance weights the variance carries their squares.
 *
 * <p>Source: verl {@code tir_optimal_token_baseline}.
 *
 * @param handleZeroTail keep the return where a trajectory outlasts its siblings
 * @param importanceCap cap of the token weights in the variance, at least 1; 0 for none
 * @param credit positions of the rewards
 */
public record TirOptimalTokenBaseline(boolean handleZeroTail, double importanceCap, Credit credit)
        implements TokenEstimator {
    public TirOptimalTokenBaseline {
        PathVariance.requireCap(importanceCap);
        Objects.requireNonNull(credit, "credit");
    }

    /** The tail is freed, weights are truncated at 2, rewards are outcomes. */
    public static TirOptimalTokenBaseline defaults() {
        return new TirOptimalTokenBaseline(true, 2, Credit.OUTCOME);
    }

    @Override
    public Set<StageInput> inputs() {
        return PathVariance.inputs(importanceCap, credit);
    }

    @Override
    public float[] perToken(StageBatch batch) {
        return compute(
                        batch.facts().tokens(),
                        credit.rewards(batch),
                        batch.facts().vector(StageInput.PROXIMAL),
                        batch.facts().vector(StageInput.SQUARED_PROBABILITIES),
                        PathVariance.weights(batch, importanceCap))
                .advantages();
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
            long siblings = Arrays.stream(members)
                    .filter(s -> batch.trainedTokens(s) > 0)
                    .count();
            path.subtractBaselines(
                    batch, members, true, (s, k, alive) -> siblings == 1 || handleZeroTail && alive == 1, advantages);
        }
        return new AdvantagesAndReturns(advantages, path.toGo());
    }
}
