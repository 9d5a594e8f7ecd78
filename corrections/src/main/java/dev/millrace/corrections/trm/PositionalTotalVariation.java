package dev.millrace.corrections.trm;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Mean total variation distance at each position of a sequence, estimated from samples as {@code E|rho_t - 1| / 2},
 * for the adaptive bound of {@link TrustRegionBounds}.
 *
 * <p>Positions count trained tokens from the start of the sequence; a sequence that has ended contributes 0. The
 * estimate of one position may exceed 1 by chance and is then 1.
 */
public final class PositionalTotalVariation {
    private PositionalTotalVariation() {}

    /**
     * One value per position, up to the largest number of trained tokens of a sequence; empty without trained tokens.
     *
     * @param ratio current / behavior
     * @throws NonFiniteLogProbException naming sequence and token
     */
    public static double[] estimate(TokenBatch batch, LogRatio ratio) {
        ratio.requireFits(batch);
        int longest = 0;
        int sequences = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            longest = Math.max(longest, batch.trainedTokens(s));
            sequences += batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        double[] mean = new double[longest];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            int position = 0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    mean[position++] += Math.abs(Math.expm1(LogRatio.bounded(ratio.finiteAt(batch, s, t))));
                }
            }
        }
        for (int position = 0; position < longest; position++) {
            mean[position] = Math.min(1.0, 0.5 * mean[position] / sequences);
        }
        return mean;
    }
}
