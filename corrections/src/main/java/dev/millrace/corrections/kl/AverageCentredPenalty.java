package dev.millrace.corrections.kl;

import dev.millrace.corrections.TokenBatch;

/**
 * A KL penalty in the advantage that is centred on its own average:
 * {@code A_t ← A_t + c · (mean d − d_t)}, {@code d = log sampler − log reference}, the mean over the batch's trained
 * tokens.
 *
 * <p>Unit: token, against the batch. Subtracting {@code c · d} alone would lower every advantage wherever the policy
 * has left the reference, and with it the probability of everything it samples; centred, the penalty moves probability
 * from tokens that have drifted more than average to those that have drifted less, and adds up to 0. With a discount
 * each token is charged for the drift of those after it too: {@code Σ_{u >= t} γ^{u−t} (mean d − d_u)} over the trained
 * tokens of its sequence; that no longer adds up to 0.
 *
 * <p>Source: tinker-cookbook {@code incorporate_kl_penalty}, whose own doc string has the sign the other way round; the
 * sign here is that of its code and its tutorial. A batch without trained tokens is returned unchanged.
 */
public final class AverageCentredPenalty {
    private final double coefficient;
    private final double discount;

    /**
     * @param coefficient c; finite and not negative
     * @param discount γ in [0, 1]; 0 charges each token for itself only
     */
    public AverageCentredPenalty(double coefficient, double discount) {
        if (!(coefficient >= 0 && coefficient < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("KL coefficient must be finite and not negative: " + coefficient);
        }
        if (!(discount >= 0 && discount <= 1)) {
            throw new IllegalArgumentException("discount must be in [0, 1]: " + discount);
        }
        this.coefficient = coefficient;
        this.discount = discount;
    }

    /**
     * New advantages, one per packed token; at context tokens the old ones.
     *
     * @param sampler log-probs of the policy that sampled
     * @param reference log-probs of the reference
     */
    public float[] apply(TokenBatch batch, float[] advantages, float[] sampler, float[] reference) {
        batch.requireFinite("advantages", advantages);
        double mean = mean(batch, sampler, reference);
        float[] adjusted = advantages.clone();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double toGo = 0.0;
            for (int t = batch.end(s) - 1; t >= batch.start(s); t--) {
                if (batch.isTrained(t)) {
                    toGo = mean - ((double) sampler[t] - reference[t]) + discount * toGo;
                    adjusted[t] = (float) (advantages[t] + coefficient * toGo);
                }
            }
        }
        return adjusted;
    }

    /** Mean of {@code log sampler − log reference} over trained tokens, 0 if there are none. */
    public static double mean(TokenBatch batch, float[] sampler, float[] reference) {
        batch.requireFinite("sampler log-probs", sampler);
        batch.requireFinite("reference log-probs", reference);
        double sum = 0.0;
        for (int t = 0; t < sampler.length; t++) {
            sum += batch.isTrained(t) ? (double) sampler[t] - reference[t] : 0.0;
        }
        return sum / Math.max(1, batch.trainedTokens());
    }
}
