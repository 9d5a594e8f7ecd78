package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;

/**
 * ReMax: the reward to go of each token against the reward of a greedy answer to the same prompt,
 * {@code A_t = Σ_{u >= t} r_u − b}.
 *
 * <p>Unit: token, against one baseline per sequence. The greedy answer costs one more generation per prompt and needs
 * no group. Rewards at context tokens are not read. Results are 0 at context tokens; {@link #computeAsReference} puts the
 * reward to go there, in the advantages too, as verl does.
 *
 * <p>Source: Li et al. 2023 (arXiv 2310.10505).
 *
 * @param credit positions of the rewards
 */
public record Remax(Credit credit) implements TokenEstimator {
    public Remax {
        Objects.requireNonNull(credit, "credit");
    }

    public static Remax defaults() {
        return new Remax(Credit.OUTCOME);
    }

    @Override
    public Set<StageInput> inputs() {
        Set<StageInput> inputs = new HashSet<>(credit.inputs());
        inputs.add(StageInput.GREEDY_REWARDS);
        return Set.copyOf(inputs);
    }

    @Override
    public float[] perToken(StageBatch batch) {
        return compute(
                        batch.facts().tokens(),
                        credit.rewards(batch),
                        batch.facts().greedyRewards())
                .advantages();
    }

    /**
     * Advantages and returns per packed token.
     *
     * @param rewards reward per token
     * @param baselines reward of the greedy answer, one per sequence
     */
    public AdvantagesAndReturns compute(TokenBatch batch, float[] rewards, double[] baselines) {
        return compute(batch, rewards, baselines, false);
    }

    /** As verl, context tokens included; for comparison only. */
    public AdvantagesAndReturns computeAsReference(TokenBatch batch, float[] rewards, double[] baselines) {
        return compute(batch, rewards, baselines, true);
    }

    private static AdvantagesAndReturns compute(
            TokenBatch batch, float[] rewards, double[] baselines, boolean fillsContext) {
        batch.requireFinite("rewards", rewards);
        batch.requireFinitePerSequence("reward baselines", baselines);
        float[] advantages = new float[batch.tokenCount()];
        float[] returns = new float[batch.tokenCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double toGo = 0.0;
            for (int t = batch.end(s) - 1; t >= batch.start(s); t--) {
                boolean trained = batch.isTrained(t);
                toGo += trained ? rewards[t] : 0.0;
                if (trained || fillsContext) {
                    returns[t] = (float) toGo;
                    advantages[t] = (float) (trained ? toGo - baselines[s] : toGo);
                }
            }
        }
        return new AdvantagesAndReturns(advantages, returns);
    }
}
