package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Band-masked importance weights, one per sequence: {@code w_s = prod_t rho_t} if that is within {@code lower ..
 * upper}, else 0.
 *
 * <p>Also called sequence-level masked importance sampling. The product grows or shrinks with the length, so a fixed
 * band empties long sequences first. The log of the product is bounded to {@code [-20, 20]}.
 *
 * <p>Source: Liu, Li et al., "When Speed Kills Stability" (2025); verl {@code rollout_is=sequence} with a
 * {@code lower_upper} threshold.
 */
public final class SequenceBandWeights implements WeightMethod {
    private final double logLower;
    private final double logUpper;

    /**
     * @param lower smallest product that is kept, in (0, 1]
     * @param upper largest product that is kept, at least 1 and finite
     */
    public SequenceBandWeights(double lower, double upper) {
        Caps.requireBand(lower, upper);
        this.logLower = Math.log(lower);
        this.logUpper = Math.log(upper);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        return WeightTally.perSequence(
                batch,
                ratio,
                weights,
                (tally, logRatio, sequence) ->
                        tally.banded(logRatio, logLower, logUpper, batch.trainedTokens(sequence)));
    }
}
