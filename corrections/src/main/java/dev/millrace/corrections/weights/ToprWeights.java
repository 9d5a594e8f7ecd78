package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * TOPR's tapered weights, one per sequence: {@code clip(prod_t rho_t, lower, upper)}, with {@code [1, 1]} for good
 * answers and {@code [0, 1]} for bad ones.
 *
 * <p>A good answer is learnt at full weight however unlikely the policy finds it; a bad one is pushed down only as
 * far as the policy still gives it, so that its probability is not driven to nothing and the objective stays bounded.
 * The product runs over trained tokens, in log space; its log is bounded to {@code [-20, 20]}.
 *
 * <p>Unit: sequence. Advantages of one sequence must have one sign: the taper is chosen by it. Source: Le Roux et
 * al.,
 * <i>Tapered Off-Policy REINFORCE</i>, arXiv 2503.14286, whose sign is that of the return; other tapers than the
 * canonical ones are its general form.
 */
public final class ToprWeights implements SignedWeightMethod {
    private final double goodLower;
    private final double goodUpper;
    private final double badLower;
    private final double badUpper;

    /** The canonical tapers: good answers at weight 1, bad ones truncated at 1. */
    public ToprWeights() {
        this(1.0, 1.0, 0.0, 1.0);
    }

    /**
     * Tapers of one's own.
     *
     * @param goodLower smallest weight of a good answer, not negative, at most 1
     * @param goodUpper largest weight of a good answer, at least 1, finite
     * @param badLower smallest weight of a bad answer, not negative, at most 1
     * @param badUpper largest weight of a bad answer, at least 1, finite
     */
    public ToprWeights(double goodLower, double goodUpper, double badLower, double badUpper) {
        Caps.requireTaper("good", goodLower, goodUpper);
        Caps.requireTaper("bad", badLower, badUpper);
        this.goodLower = goodLower;
        this.goodUpper = goodUpper;
        this.badLower = badLower;
        this.badUpper = badUpper;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] advantages, float[] weights) {
        ratio.requireFits(batch);
        batch.requireFinite("advantages", advantages);
        batch.requireLength("weights", weights.length);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            double raw = Math.exp(LogRatio.bounded(SequenceSums.logRatio(batch, ratio, s)));
            boolean good = isGood(batch, advantages, s);
            double weight = Math.max(good ? goodLower : badLower, Math.min(good ? goodUpper : badUpper, raw));
            if (weight != raw) {
                tally.truncated(weight, batch.trainedTokens(s));
            } else {
                tally.kept(weight, batch.trainedTokens(s));
            }
            SequenceSums.spread(batch, s, (float) weight, weights);
        }
        return tally.summary();
    }

    private static boolean isGood(TokenBatch batch, float[] advantages, int sequence) {
        boolean anyPositive = false;
        boolean anyNegative = false;
        for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
            if (batch.isTrained(t)) {
                anyPositive |= advantages[t] > 0f;
                anyNegative |= advantages[t] < 0f;
            }
        }
        if (anyPositive && anyNegative) {
            throw new IllegalArgumentException(
                    "TOPR needs advantages of one sign within a sequence: sequence=" + sequence);
        }
        return !anyNegative;
    }
}
