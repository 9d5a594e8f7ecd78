package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/**
 * Generalised advantage estimation: {@code A_t = δ_t + γ λ A_{t+1}}, {@code δ_t = r_t + γ V_{t+1} − V_t}, over the
 * trained tokens of each sequence; returns are {@code A_t + V_t}.
 *
 * <p>Unit: token. Context tokens are stepped over: {@code t + 1} is the next trained token, undiscounted in between, so
 * a tool's output costs the policy nothing. After the last trained token value and advantage are 0. Advantages are
 * whitened over the batch's trained tokens, which needs at least 2 of them; returns are not.
 *
 * <p>Advantages and returns are 0 at context tokens. {@link #asReference} puts there what verl has there: the advantage
 * carried from the next trained token, whitened, and that plus the value.
 *
 * <p>Source: Schulman et al. 2015 (arXiv 1506.02438).
 */
public final class Gae {
    private final double gamma;
    private final double lambda;
    private final boolean fillsContext;

    private Gae(double gamma, double lambda, boolean fillsContext) {
        requireFraction("gamma", gamma);
        requireFraction("lambda", lambda);
        this.gamma = gamma;
        this.lambda = lambda;
        this.fillsContext = fillsContext;
    }

    /**
     * @param gamma discount of the future, in [0, 1]
     * @param lambda how far to trust rewards over values, in [0, 1]; 1 is rewards only
     */
    public Gae(double gamma, double lambda) {
        this(gamma, lambda, false);
    }

    /** As verl, context tokens included. Values at context tokens are then read, and must be finite. */
    public static Gae asReference(double gamma, double lambda) {
        return new Gae(gamma, lambda, true);
    }

    /**
     * Advantages and returns per packed token.
     *
     * @param rewards reward per token; at context tokens it is not read
     * @param values value of the state before each token
     */
    public AdvantagesAndReturns compute(TokenBatch batch, float[] rewards, float[] values) {
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
        return whitened(batch, advantages, values);
    }

    private AdvantagesAndReturns whitened(TokenBatch batch, double[] advantages, float[] values) {
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
