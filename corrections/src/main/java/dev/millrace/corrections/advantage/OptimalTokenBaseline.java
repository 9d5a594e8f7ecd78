package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The optimal token baseline: at each position the baseline of least variance over the group.
 * {@code A_{i,t} = G_{i,t} − Σ_j W_{j,t} G_{j,t} / Σ_j W_{j,t}}, where {@code G} is the reward to go and {@code W} the
 * variance of the score accumulated up to the token.
 *
 * <p>Unit: token, against the same position in its group. Trajectories whose path was surprising say more about the
 * baseline. With importance weights {@code W} carries their squares, which minimises the error under truncated weights.
 * A group of one has baseline 0. Only trajectories whose token at that position is trained enter its sums, so positions
 * must mean the same thing in each of them. For rollouts with context between trained tokens use
 * {@link TirOptimalTokenBaseline}.
 *
 * <p>Where only one trajectory of the group is left, its baseline would be its own return and its advantage 0;
 * {@code handleZeroTail} sets the baseline to 0 there. {@link #computeAsReference} finds these positions by counting
 * trained tokens, as verl does; that gives other positions where context lies in between.
 *
 * <p>Source: verl {@code optimal_token_baseline}; the optimal baseline is Greensmith et al. 2004.
 *
 * @param handleZeroTail keep the return where a trajectory outlasts its siblings
 * @param importanceCap cap of the token weights in the variance, at least 1; 0 for none
 * @param credit positions of the rewards
 */
public record OptimalTokenBaseline(boolean handleZeroTail, double importanceCap, Credit credit)
        implements TokenEstimator {
    public OptimalTokenBaseline {
        PathVariance.requireCap(importanceCap);
        Objects.requireNonNull(credit, "credit");
    }

    /** The tail is freed, weights are truncated at 2, rewards are outcomes. */
    public static OptimalTokenBaseline defaults() {
        return new OptimalTokenBaseline(true, 2, Credit.OUTCOME);
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
        return compute(batch, rewards, oldLogProbs, sumSquaredProbs, weights, false);
    }

    /**
     * As verl: the tail begins at the position whose number is the second largest count of trained tokens; for comparison
     * only.
     */
    public AdvantagesAndReturns computeAsReference(
            TokenBatch batch,
            float[] rewards,
            float[] oldLogProbs,
            float[] sumSquaredProbs,
            float @Nullable [] weights) {
        return compute(batch, rewards, oldLogProbs, sumSquaredProbs, weights, true);
    }

    private AdvantagesAndReturns compute(
            TokenBatch batch,
            float[] rewards,
            float[] oldLogProbs,
            float[] sumSquaredProbs,
            float @Nullable [] weights,
            boolean tailByCount) {
        PathVariance path = new PathVariance(batch, rewards, oldLogProbs, sumSquaredProbs, weights);
        float[] advantages = new float[batch.tokenCount()];
        for (int[] members : GroupMembers.of(batch)) {
            Tail tail = tailByCount ? Tail.byCount(batch, members) : null;
            path.subtractBaselines(
                    batch,
                    members,
                    false,
                    (s, position, alive) -> members.length == 1
                            || handleZeroTail && (tail == null ? alive == 1 : tail.contains(s, position)),
                    advantages);
        }
        return new AdvantagesAndReturns(advantages, path.toGo());
    }

    /** The positions of the one longest trajectory beyond the second longest, by counts of trained tokens. */
    private record Tail(int sequence, int from) {
        static Tail byCount(TokenBatch batch, int[] members) {
            int longest = -1;
            int second = -1;
            for (int s : members) {
                if (longest < 0 || batch.trainedTokens(s) > batch.trainedTokens(longest)) {
                    second = longest;
                    longest = s;
                } else if (second < 0 || batch.trainedTokens(s) > batch.trainedTokens(second)) {
                    second = s;
                }
            }
            boolean exists = second >= 0 && batch.trainedTokens(longest) > batch.trainedTokens(second);
            return exists ? new Tail(longest, batch.trainedTokens(second)) : new Tail(-1, 0);
        }

        boolean contains(int s, int position) {
            return s == sequence && position >= from;
        }
    }
}
