package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.block.BlockSums;
import dev.millrace.corrections.block.TokenBlock;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * How far two policies are apart over the trained tokens: the three of the diagnostics' numbers that every alternative shows,
 * without the others, which cost three times as much. A batch without trained tokens gives zeros.
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
        TokenBlock block = new TokenBlock();
        double logRatios = 0;
        double k3 = 0;
        double squares = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t += TokenBlock.CAPACITY) {
                block.load(batch, ratio, s, t, Math.min(t + TokenBlock.CAPACITY, batch.end(s)));
                logRatios += block.logRatioSum();
                k3 += BlockSums.sum(block.k3, block.size());
                squares += block.ratioSquares();
            }
        }
        double n = batch.trainedTokens();
        return new Divergence(-logRatios / n, k3 / n, squares / n - 1.0);
    }
}
