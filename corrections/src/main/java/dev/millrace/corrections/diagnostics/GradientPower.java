package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.TokenBatch;

/**
 * How much of the gradient is noise, from a forward pass alone.
 *
 * <p>The squared norm of the score of a token with respect to its logits is {@code e_t = 1 - 2 p_t + sum_v p_v^2}. A
 * sequence's gradient then has about the power {@code sum_t (w_t A_t)^2 e_t}, leaving out the products of different
 * tokens; the mean of that over sequences is signal and noise together.
 *
 * <p>A proxy: it lives in logit space and is to be compared with itself over time, not with a parameter norm. Unit:
 * sequence. Source: verl {@code compute_variance_proxy_metrics}, which takes the mean weight and advantage of a
 * sequence where this takes each token's own; with one of each per sequence the two are the same.
 */
public final class GradientPower {
    private GradientPower() {}

    /**
     * Returns the mean over sequences with a trained token of {@code sum_t (w_t A_t)^2 e_t}.
     *
     * @param logProbs the target's, one per packed token
     * @param sumSquaredProbs sum over the vocabulary of the squared probabilities, in (0, 1], one per packed token
     * @param weights importance weights applied to them, one per packed token
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming vector, sequence and token
     * @throws IllegalArgumentException if no token is trained
     */
    public static double of(
            TokenBatch batch, float[] logProbs, float[] sumSquaredProbs, float[] advantages, float[] weights) {
        batch.requireFinite("log-probs", logProbs);
        batch.requireFinite("sums of squared probabilities", sumSquaredProbs);
        batch.requireFinite("advantages", advantages);
        batch.requireFinite("weights", weights);
        if (batch.trainedTokens() == 0) {
            throw new IllegalArgumentException(
                    "gradient power needs at least one trained token: sequences=" + batch.sequenceCount());
        }
        double power = 0;
        int sequences = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            sequences += batch.trainedTokens(s) > 0 ? 1 : 0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double advantage = advantages[t];
                    double score = Math.max(0.0, 1.0 - 2.0 * Math.exp(logProbs[t]) + sumSquaredProbs[t]);
                    power += (double) weights[t] * weights[t] * advantage * advantage * score;
                }
            }
        }
        return power / sequences;
    }
}
