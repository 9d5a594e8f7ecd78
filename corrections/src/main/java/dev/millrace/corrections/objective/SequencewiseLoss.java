package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * One pass over the sequences of an objective whose ratio is the sequence's: {@code loss = Σ_s C_s f(x_s, A_s)} with
 * {@code x_s} the mean log ratio, {@code A_s} the mean advantage and {@code C_s} the aggregation's coefficient times
 * the sum of the sequence's weights. Each trained token receives {@code C_s f'(x_s) / n_s}.
 */
final class SequencewiseLoss {
    private final ObjectiveInput input;
    private final double[] coefficients;
    private final float[] gradient;
    private final byte[] clipFlags;
    private double loss;
    private double logRatios;
    private long clipped;
    private long lowerClipped;
    private final ActedOn.Tally acted = new ActedOn.Tally();

    SequencewiseLoss(ObjectiveInput input, double[] coefficients) {
        this.input = input;
        this.coefficients = coefficients;
        this.gradient = new float[input.batch().tokenCount()];
        this.clipFlags = new byte[gradient.length];
    }

    /** The formula; {@code derivative} is d loss / d mean log ratio. */
    interface SequenceRule {
        void apply(double meanLogRatio, double advantage, TokenTerm term);
    }

    SequencewiseLoss apply(SequenceRule rule, float[] anchor) {
        SequenceMeans means = SequenceMeans.of(input, anchor);
        TokenTerm term = new TokenTerm();
        TokenBatch batch = input.batch();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            int trained = batch.trainedTokens(s);
            if (trained == 0) {
                continue;
            }
            term.moveTo(s, batch.start(s));
            rule.apply(means.logRatios()[s], means.advantages()[s], term);
            double coefficient = coefficients[s] * means.weightSums()[s];
            loss += coefficient * term.loss;
            logRatios += trained * means.logRatios()[s];
            clipped += term.clipped ? trained : 0;
            lowerClipped += term.lowerClipped ? trained : 0;
            acted.add(s, term.actedOn() ? trained : 0);
            spread(s, coefficient * term.derivative / trained, term);
        }
        return this;
    }

    private void spread(int s, double derivative, TokenTerm term) {
        TokenBatch batch = input.batch();
        byte flags = (byte) ((term.clipped ? ObjectiveResult.CLIPPED : 0)
                | (term.lowerClipped ? ObjectiveResult.LOWER_CLIPPED : 0));
        for (int t = batch.start(s); t < batch.end(s); t++) {
            if (batch.isTrained(t)) {
                gradient[t] = TokenwiseLoss.finiteGradient(batch, s, t, derivative);
                clipFlags[t] = flags;
            }
        }
    }

    ObjectiveResult withClipMetrics() {
        int trained = Math.max(1, input.batch().trainedTokens());
        Map<String, Double> metrics = new LinkedHashMap<>();
        metrics.put(ObjectiveResult.CLIPPED_FRACTION, (double) clipped / trained);
        metrics.put(ObjectiveResult.APPROX_KL, -logRatios / trained);
        metrics.put(ObjectiveResult.LOWER_CLIPPED_FRACTION, (double) lowerClipped / trained);
        return new ObjectiveResult(loss, gradient, clipFlags, acted.done(), metrics);
    }

    ObjectiveResult withKlMetric() {
        double approxKl = -logRatios / Math.max(1, input.batch().trainedTokens());
        return new ObjectiveResult(
                loss, gradient, clipFlags, acted.done(), Map.of(ObjectiveResult.APPROX_KL, approxKl));
    }
}
