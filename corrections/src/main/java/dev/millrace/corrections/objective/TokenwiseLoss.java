package dev.millrace.corrections.objective;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import java.util.LinkedHashMap;
import java.util.Map;

/** One pass over the trained tokens: applies a rule, weighs, aggregates, and counts for the metrics. */
final class TokenwiseLoss {
    private final ObjectiveInput input;
    private final double[] coefficients;
    private final float[] gradient;
    private final byte[] clipFlags;
    private final TokenTerm term = new TokenTerm();
    private double loss;
    private double logRatios;
    private long clipped;
    private long lowerClipped;
    private final ActedOn.Tally acted = new ActedOn.Tally();

    TokenwiseLoss(ObjectiveInput input, double[] coefficients) {
        this.input = input;
        this.coefficients = coefficients;
        this.gradient = new float[input.batch().tokenCount()];
        this.clipFlags = new byte[gradient.length];
    }

    /** @param anchor log-probs passed to the rule in addition to the current ones */
    TokenwiseLoss apply(TokenRule rule, float[] anchor) {
        TokenBatch batch = input.batch();
        float[] current = input.current();
        float[] advantages = input.advantages();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double sequenceLoss = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    term.moveTo(s, t);
                    rule.apply(current[t], anchor[t], advantages[t], term);
                    sequenceLoss += add(s, t);
                }
            }
            loss += coefficients[s] * sequenceLoss;
        }
        return this;
    }

    private double add(int s, int t) {
        double weight = input.weight(t);
        gradient[t] = finiteGradient(input.batch(), s, t, coefficients[s] * weight * term.derivative);
        logRatios += term.logRatio;
        clipped += term.clipped ? 1 : 0;
        lowerClipped += term.lowerClipped ? 1 : 0;
        acted.add(s, term.actedOn() ? 1 : 0);
        clipFlags[t] = (byte) ((term.clipped ? ObjectiveResult.CLIPPED : 0)
                | (term.lowerClipped ? ObjectiveResult.LOWER_CLIPPED : 0));
        return weight * term.loss;
    }

    /**
     * A derivative as the float a learner takes; one beyond float range would destroy the weights, so it is refused.
     */
    static float finiteGradient(TokenBatch batch, int s, int t, double derivative) {
        float asFloat = (float) derivative;
        if (!Float.isFinite(asFloat)) {
            throw new NonFiniteLogProbException("gradient (the ratio overflows)", s, t - batch.start(s), derivative);
        }
        return asFloat;
    }

    /** The result with approximate KL and both clip fractions. */
    ObjectiveResult withClipMetrics() {
        Map<String, Double> metrics = new LinkedHashMap<>();
        metrics.put(ObjectiveResult.CLIPPED_FRACTION, mean(clipped));
        metrics.put(ObjectiveResult.APPROX_KL, mean(-logRatios));
        metrics.put(ObjectiveResult.LOWER_CLIPPED_FRACTION, mean(lowerClipped));
        return new ObjectiveResult(loss, gradient, clipFlags, acted.done(), metrics);
    }

    /** The result with approximate KL and the clipped fraction. */
    ObjectiveResult withClippedFraction() {
        Map<String, Double> metrics = new LinkedHashMap<>();
        metrics.put(ObjectiveResult.CLIPPED_FRACTION, mean(clipped));
        metrics.put(ObjectiveResult.APPROX_KL, mean(-logRatios));
        return new ObjectiveResult(loss, gradient, clipFlags, acted.done(), metrics);
    }

    /** The result with approximate KL only. */
    ObjectiveResult withKlMetric() {
        return new ObjectiveResult(
                loss, gradient, clipFlags, acted.done(), Map.of(ObjectiveResult.APPROX_KL, mean(-logRatios)));
    }

    ObjectiveResult withoutMetrics() {
        return new ObjectiveResult(loss, gradient, clipFlags, acted.done(), Map.of());
    }

    private double mean(double sum) {
        int trained = input.batch().trainedTokens();
        return trained == 0 ? 0.0 : sum / trained;
    }
}
