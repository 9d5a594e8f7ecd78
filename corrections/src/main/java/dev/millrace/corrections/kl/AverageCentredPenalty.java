package dev.millrace.corrections.kl;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;
import java.util.Set;

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
 *
 * @param coefficient c; finite and not negative
 * @param discount γ in [0, 1]; 0 charges each token for itself only
 */
public record AverageCentredPenalty(double coefficient, double discount) implements Stage {
    public AverageCentredPenalty {
        if (!(coefficient >= 0 && coefficient < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("KL coefficient must be finite and not negative: " + coefficient);
        }
        requireDiscount(discount);
    }

    static void requireDiscount(double discount) {
        if (!(discount >= 0 && discount <= 1)) {
            throw new IllegalArgumentException("discount must be in [0, 1]: " + discount);
        }
    }

    @Override
    public String name() {
        return "kl_centred";
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.BEHAVIOR, StageInput.REFERENCE);
    }

    /**
     * Runs after an estimator. Changes the advantages of the remaining tokens, using the mean over these; other tokens
     * keep theirs. Counts as acted on every token that then has an advantage.
     */
    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch left = batch.left();
        float[] sampler = batch.facts().vector(StageInput.BEHAVIOR);
        float[] reference = batch.facts().vector(StageInput.REFERENCE);
        float[] advantages = batch.tokenAdvantages();
        Map<String, Double> values = StageSettings.of(this);
        if (left.trainedTokens() > 0) {
            values.put("mean", mean(left, sampler, reference));
            advantages = apply(left, advantages, sampler, reference);
        }
        return batch.tokenAdvantage(this, advantages, values);
    }

    /**
     * New advantages, one per packed token; at context tokens the old ones.
     *
     * @param sampler log-probs of the policy that sampled
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
