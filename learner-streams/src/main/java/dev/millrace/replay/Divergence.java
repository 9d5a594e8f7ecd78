package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * How far two policies are apart over the trained tokens: the three of the diagnostics' numbers that every alternative shows,
 * without the others, which cost three times as much. The same bits as {@code PolicyGap}; a batch without trained tokens
 * gives zeros.
 *
 * @param k1 mean of -log ratio
 * @param k3 mean of ratio - 1 - log ratio
 * @param chiSquare mean squared ratio minus 1
 */
record Divergence(double k1, double k3, double chiSquare) {

    /** @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token */
    static Divergence of(TokenBatch batch, LogRatio ratio) {
        if (batch.trainedTokens() == 0) {
            return new Divergence(0, 0, 0);
        }
        ratio.requireFinite(batch);
        double logRatios = 0;
        double k3 = 0;
        double squares = 0;
        for (int t = 0; t < batch.tokenCount(); t++) {
            if (batch.isTrained(t)) {
                double logRatio = ratio.at(t);
                double bounded = LogRatio.bounded(logRatio);
                double exp = Math.exp(bounded);
                logRatios += logRatio;
                k3 += Math.expm1(bounded) - bounded;
                squares += exp * exp;
            }
        }
        double n = batch.trainedTokens();
        return new Divergence(-logRatios / n, k3 / n, squares / n - 1.0);
    }
}
