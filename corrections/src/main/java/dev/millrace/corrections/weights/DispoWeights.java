package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * DISPO's weights, one per token: {@code clip(rho, lower, upper)} with bounds of their own for correct and for
 * incorrect answers.
 *
 * <p>The weight is a constant and the gradient always passes, as in CISPO; four bounds steer four effects. By the
 * authors' ablations: for correct answers weights above 1 raise and weights below 1 lower the entropy; for incorrect
 * ones bounds that are too tight end in repetition (above 1) or in vanishing length (below 1).
 *
 * <p>Unit: token, by the sign of its advantage. Source: Karaman et al., <i>DISPO</i>, arXiv 2602.00983, which writes
 * the bounds as {@code 1 - eps} and {@code 1 + eps}; here they are given as the weights themselves.
 */
public final class DispoWeights implements SignedWeightMethod {
    private final double correctLower;
    private final double correctUpper;
    private final double incorrectLower;
    private final double incorrectUpper;

    /**
     * @param correctLower smallest weight for a positive advantage, not negative, at most 1
     * @param correctUpper largest weight for a positive advantage, at least 1, finite
     * @param incorrectLower smallest weight for a negative advantage, not negative, at most 1
     * @param incorrectUpper largest weight for a negative advantage, at least 1, finite
     */
    public DispoWeights(double correctLower, double correctUpper, double incorrectLower, double incorrectUpper) {
        Caps.requireTaper("correct", correctLower, correctUpper);
        Caps.requireTaper("incorrect", incorrectLower, incorrectUpper);
        this.correctLower = correctLower;
        this.correctUpper = correctUpper;
        this.incorrectLower = incorrectLower;
        this.incorrectUpper = incorrectUpper;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] advantages, float[] weights) {
        ratio.requireFits(batch);
        batch.requireFinite("advantages", advantages);
        batch.requireLength("weights", weights.length);
        WeightTally tally = new WeightTally();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            tally.nextSequence();
            for (int t = batch.start(s); t < batch.end(s); t++) {
                weights[t] = batch.isTrained(t)
                        ? (float) weight(ratio.finiteAt(batch, s, t), advantages[t] >= 0f, tally)
                        : 0f;
            }
        }
        return tally.summary();
    }

    private double weight(double logRatio, boolean correct, WeightTally tally) {
        double raw = Math.exp(LogRatio.bounded(logRatio));
        double weight = Math.max(
                correct ? correctLower : incorrectLower, Math.min(correct ? correctUpper : incorrectUpper, raw));
        if (weight != raw) {
            tally.truncated(weight, 1);
        } else {
            tally.kept(weight, 1);
        }
        return weight;
    }
}
