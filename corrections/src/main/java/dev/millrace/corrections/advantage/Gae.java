package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;

/**
 * Generalised advantage estimation: {@code A_t = δ_t + γ λ A_{t+1}}, {@code δ_t = r_t + γ V_{t+1} − V_t}, over the
 * trained tokens of each sequence; returns are {@code A_t + V_t}.
 *
 * <p>Unit: token. Context tokens are stepped over: {@code t + 1} is the next trained token, undiscounted in between, so
 * a tool's output costs the policy nothing. After the last trained token value and advantage are 0. Advantages are
 * whitened over the batch's trained tokens, which needs at least 2 of them; returns are not.
 *
 * <p>Advantages and returns are 0 at context tokens. {@link #computeAsReference} puts there what verl has there: the advantage
 * carried from the next trained token, whitened, and that plus the value.
 *
 * <p>Source: Schulman et al. 2015 (arXiv 1506.02438).
 *
 * @param gamma discount of the future, in [0, 1]
 * @param lambda weight of rewards over values, in [0, 1]; 1 is rewards only
 * @param credit positions of the rewards
 */
public record Gae(double gamma, double lambda, Credit credit) implements TokenEstimator {
    public Gae {
        requireFraction("gamma", gamma);
        requireFraction("lambda", lambda);
        Objects.requireNonNull(credit, "credit");
    }

    /** Outcome rewards, not discounted, and no trust in values but as a baseline. */
    public static Gae defaults() {
        return new Gae(1, 1, Credit.OUTCOME);
    }

    @Override
    public Set<StageInput> inputs() {
        Set<StageInput> inputs = new HashSet<>(credit.inputs());
        inputs.add(StageInput.VALUES);
        return Set.copyOf(inputs);
    }

    @Override
    public int leastTokens() {
        return Whitening.LEAST_TOKENS;
    }

    @Override
    public float[] perToken(StageBatch batch) {
        AdvantagesAndReturns found = compute(
                batch.facts().tokens(), credit.rewards(batch), batch.facts().vector(StageInput.VALUES));
        batch.returns(found.returns());
        return found.advantages();
    }

    /**
     * Advantages and returns per packed token.
     *
     * @param rewards reward per token; at context tokens it is not read
     * @param values value of the state before each token
     */
    public AdvantagesAndReturns compute(TokenBatch batch, float[] rewards, float[] values) {
        return compute(batch, rewards, values, false);
    }

    /** As verl, context tokens included. Values at context tokens are then read, and must be finite; for comparison only. */
    public AdvantagesAndReturns computeAsReference(TokenBatch batch, float[] rewards, float[] values) {
        return compute(batch, rewards, values, true);
    }

    private AdvantagesAndReturns compute(TokenBatch batch, float[] rewards, float[] values, boolean fillsContext) {
        batch.requireFinite("rewards", rewards);
        batch.requireFinite("values", values);
        double[] advantages = new double[batch.tokenCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double nextValue = 0.0;
            double nextAdvantage = 0.0;
            for (int t = batch.end(s) - 1; t >= batch.start(s); t--) {
                if (batch.isTrained(t)) {
                    double delta = rewards[t] + gamma * nextValue - values[t];
                    nextAdvantage = delta + gamma * lambda * nextAdvantage;
                    nextValue = values[t];
                }
                advantages[t] = nextAdvantage;
            }
        }
        return whitened(batch, advantages, values, fillsContext);
    }

    private static AdvantagesAndReturns whitened(
            TokenBatch batch, double[] advantages, float[] values, boolean fillsContext) {
        Whitening whitening = Whitening.ofTokens(batch, advantages);
        float[] whitened = new float[advantages.length];
        float[] returns = new float[advantages.length];
        for (int t = 0; t < advantages.length; t++) {
            if (fillsContext || batch.isTrained(t)) {
                whitened[t] = (float) whitening.apply(advantages[t]);
                returns[t] = (float) (advantages[t] + values[t]);
            }
        }
        return new AdvantagesAndReturns(whitened, returns);
    }

    static void requireFraction(String name, double value) {
        if (!(value >= 0 && value <= 1)) {
            throw new IllegalArgumentException(name + " must be in [0, 1]: " + value);
        }
    }
}
