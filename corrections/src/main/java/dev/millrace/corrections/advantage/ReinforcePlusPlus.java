package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import java.util.Objects;
import java.util.Set;

/**
 * REINFORCE++: the discounted reward to go of each token, {@code G_t = r_t + γ G_{t+1}}, whitened over all trained
 * tokens of the batch.
 *
 * <p>Unit: token; there is no group and no value function. Context tokens are skipped: {@code t + 1} is the next
 * trained token, undiscounted in between. (Older implementations cut the return at context. Then the reward at the end
 * of a multi-turn rollout does not reach the turns before its last tool output.) At least 2 trained tokens are needed.
 *
 * <p>Source: Hu et al. 2025 (arXiv 2501.03262).
 *
 * @param gamma discount per trained token, in [0, 1]
 * @param credit positions of the rewards
 */
public record ReinforcePlusPlus(double gamma, Credit credit) implements TokenEstimator {
    public ReinforcePlusPlus {
        Gae.requireFraction("gamma", gamma);
        Objects.requireNonNull(credit, "credit");
    }

    /** Outcome rewards, not discounted. */
    public static ReinforcePlusPlus defaults() {
        return new ReinforcePlusPlus(1, Credit.OUTCOME);
    }

    @Override
    public Set<StageInput> inputs() {
        return credit.inputs();
    }

    @Override
    public int leastTokens() {
        return Whitening.LEAST_TOKENS;
    }

    @Override
    public float[] perToken(StageBatch batch) {
        return compute(batch.facts().tokens(), credit.rewards(batch)).advantages();
    }

    /**
     * Advantages and returns per packed token, both 0 at context tokens.
     *
     * @param rewards reward per token; not read at context tokens
     */
    public AdvantagesAndReturns compute(TokenBatch batch, float[] rewards) {
        batch.requireFinite("rewards", rewards);
        double[] returns = new double[batch.tokenCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double toGo = 0.0;
            for (int t = batch.end(s) - 1; t >= batch.start(s); t--) {
                if (batch.isTrained(t)) {
                    toGo = rewards[t] + gamma * toGo;
                    returns[t] = toGo;
                }
            }
        }
        Whitening whitening = Whitening.ofTokens(batch, returns);
        float[] advantages = new float[returns.length];
        float[] asFloats = new float[returns.length];
        for (int t = 0; t < returns.length; t++) {
            advantages[t] = batch.isTrained(t) ? (float) whitening.apply(returns[t]) : 0f;
            asFloats[t] = (float) returns[t];
        }
        return new AdvantagesAndReturns(advantages, asFloats);
    }
}
