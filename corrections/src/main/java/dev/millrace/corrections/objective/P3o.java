package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * P3O: the policy gradient under weights capped at the effective sample size, plus a pull back to the anchor that grows
 * as the sample size falls. {@code ℓ = −sg[min(r, e)] A log π + sg[1 − e] (log r + 1/r − 1)}
 * with {@code r = exp(current − anchor)}. {@code e = (Σ r)² / (n Σ r²)} over the n trained tokens of the minibatch.
 *
 * <p>Unit of correction: token; the sample size is the batch's. There is nothing to tune: on-policy {@code e} is 1,
 * which leaves the plain policy gradient. Where few tokens carry the weight, both the cap and the pull become strict.
 * The derivative is {@code −A min(r, e) + (1 − e)(1 − 1/r)}. Log ratios are bounded to ±20, beyond which the pull has
 * no derivative. Metrics: approximate KL, fraction of tokens at the cap, {@value #ESS}.
 *
 * <p>Source: arXiv 2605.12380 (abstract only) and its implementation in FeynRL, which also provides the estimate of the
 * divergence.
 *
 * @param anchor policy to compare with
 */
public record P3o(Anchor anchor) implements Objective {
    /** The effective sample size over the number of trained tokens, in (0, 1]. */
    public static final String ESS = "p3o_ess";

    /** Around the policy that sampled. */
    public static P3o defaults() {
        return new P3o(Anchor.BEHAVIOR);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        float[] anchored = input.requireProximal("P3O");
        double ess = effectiveShare(input, anchored);
        ObjectiveResult result = new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply((current, old, advantage, term) -> token(ess, current, old, advantage, term), anchored)
                .withClippedFraction();
        Map<String, Double> metrics = new LinkedHashMap<>(result.metrics());
        metrics.put(ESS, ess);
        return result.withMetrics(metrics);
    }

    private static void token(double ess, double current, double old, double advantage, TokenTerm term) {
        term.logRatio = BoundedLogRatio.of(current, old);
        double ratio = Math.exp(term.logRatio);
        double weight = Math.min(ratio, ess);
        double inverse = Math.exp(-term.logRatio);
        term.clipped = weight < ratio;
        term.acted = ess < 1 && term.logRatio != 0;
        term.loss = -weight * advantage * current + (1 - ess) * (term.logRatio + inverse - 1);
        term.derivative = -weight * advantage + (1 - ess) * (1 - inverse) * BoundedLogRatio.slope(current, old);
    }

    private static double effectiveShare(ObjectiveInput input, float[] anchored) {
        TokenBatch batch = input.batch();
        double sum = 0.0;
        double squares = 0.0;
        for (int t = 0; t < batch.tokenCount(); t++) {
            if (batch.isTrained(t)) {
                double ratio = Math.exp(BoundedLogRatio.of(input.current()[t], anchored[t]));
                sum += ratio;
                squares += ratio * ratio;
            }
        }
        // at most 1 by Cauchy and Schwarz, and by rounding a last bit above
        return squares == 0 ? 1.0 : Math.min(1.0, sum / squares * sum / batch.trainedTokens());
    }
}
