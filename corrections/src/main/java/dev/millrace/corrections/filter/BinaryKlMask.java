package dev.millrace.corrections.filter;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.RatioMask;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Map;

/**
 * FlashREINFORCE's mask: a sequence is kept if the mean over its tokens of the binary KL of the sampled token,
 * {@code p log(p/q) + (1-p) log((1-p)/(1-q))}, is at most {@code threshold}; p is proximal's probability of the token, q
 * behavior's.
 *
 * <p>The divergence of "this token" against "any other": a lower bound of KL(proximal || behavior) at the token, never negative,
 * and not a log ratio, so that one unlikely token does not decide about a sequence. Probabilities are bounded to
 * {@code [1e-8, 1 - 1e-8]}.
 *
 * <p>Unit: sequence. Source: OpenRLHF pull requests 1339 and 1340, read as their text.
 *
 * @param threshold largest mean in nats, positive, finite
 */
public record BinaryKlMask(double threshold) implements RatioMask {
    private static final double LEAST = 1e-8;

    public BinaryKlMask {
        if (!(threshold > 0 && threshold < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("threshold must be positive and finite: " + threshold);
        }
    }

    /** A mean of 0.01 nats. */
    public static BinaryKlMask defaults() {
        return new BinaryKlMask(0.01);
    }

    @Override
    public String name() {
        return "binary_kl";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch left = batch.left();
        LogRatio ratio = batch.facts().ratio(RatioKind.ANCHOR);
        ratio.requireFinite(left);
        byte[] keep = left.mask();
        double total = 0;
        for (int s = 0; s < left.sequenceCount(); s++) {
            double sum = 0;
            for (int t = left.start(s); t < left.end(s); t++) {
                sum += left.isTrained(t) ? divergence(ratio.targetAt(t), ratio.samplerAt(t)) : 0;
            }
            total += sum;
            if (left.trainedTokens(s) > 0 && sum / left.trainedTokens(s) > threshold) {
                Arrays.fill(keep, left.start(s), left.end(s), (byte) 0);
            }
        }
        Map<String, Double> values = StageSettings.of(this);
        if (left.trainedTokens() > 0) {
            values.put("mean_binary_kl", total / left.trainedTokens());
        }
        return batch.mask(this, keep, values);
    }

    /** Of one token, by its log-probs. */
    static double divergence(double logP, double logQ) {
        double p = Math.max(LEAST, Math.min(1 - LEAST, Math.exp(logP)));
        double q = Math.max(LEAST, Math.min(1 - LEAST, Math.exp(logQ)));
        return p * Math.log(p / q) + (1 - p) * Math.log((1 - p) / (1 - q));
    }
}
