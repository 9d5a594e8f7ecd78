package dev.millrace.corrections.r2vpo;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Second moment of the ratio about 1, {@code mean (rho - 1)^2} over trained tokens.
 *
 * <p>1 is the expectation of the ratio under the sampler, so this is its variance, and the chi-squared divergence of
 * target from sampler. Half of it is the leading term of the KL. Ratios are bounded to {@code e^±20}.
 *
 * <p>Unit: token, averaged over the batch.
 */
public final class RatioVariance {
    private RatioVariance() {}

    /**
     * The mean over trained tokens; 0 without any.
     *
     * @throws NonFiniteLogProbException naming sequence and token
     */
    public static double of(TokenBatch batch, LogRatio ratio) {
        ratio.requireFits(batch);
        double sum = 0.0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double deviation = Math.expm1(LogRatio.bounded(ratio.finiteAt(batch, s, t)));
                    sum += deviation * deviation;
                }
            }
        }
        return batch.trainedTokens() == 0 ? 0.0 : sum / batch.trainedTokens();
    }
}
