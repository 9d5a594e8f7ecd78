package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;

/**
 * The tokens that a correction leaves to train on: how far the two policies are apart on them, and their importance weights.
 * Zeros where it leaves none.
 *
 * <p>The divergences are three of the diagnostics' numbers, without the others, which cost three times as much.
 *
 * @param k1 mean of -log ratio
 * @param k3 mean of ratio - 1 - log ratio
 * @param chiSquare mean squared ratio minus 1
 * @param meanWeight mean importance weight
 * @param maxWeight largest importance weight
 * @param changedWeights weights that a correction made other than the ratio
 */
record KeptTokens(double k1, double k3, double chiSquare, double meanWeight, double maxWeight, long changedWeights) {

    /**
     * Those of a batch.
     *
     * @param ratio whose divergence is told
     * @param weights one per packed token, not negative
     * @param changed how many of them are not the ratio
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token
     */
    static KeptTokens of(TokenBatch kept, LogRatio ratio, float[] weights, long changed) {
        TokenBlock block = new TokenBlock();
        double logRatios = 0;
        double k3 = 0;
        double squares = 0;
        double sum = 0;
        double largest = 0;
        for (int s = 0; s < kept.sequenceCount(); s++) {
            for (int t = kept.start(s); kept.trainedTokens(s) > 0 && t < kept.end(s); t += TokenBlock.CAPACITY) {
                int end = Math.min(t + TokenBlock.CAPACITY, kept.end(s));
                block.load(kept, ratio, s, t, end);
                logRatios += block.logRatioSum();
                k3 += BlockSums.sum(block.k3, block.size());
                squares += block.ratioSquares();
                int size = 0;
                for (int i = t; i < end; i++) { // no branch: which tokens are masked no branch predictor can know
                    block.scratch[size] = weights[i];
                    size += kept.trained(i);
                }
                largest = Math.max(largest, BlockSums.max(block.scratch, size));
                sum += BlockSums.sum(block.scratch, size);
            }
        }
        double n = kept.trainedTokens();
        return n == 0
                ? new KeptTokens(0, 0, 0, 0, 0, changed)
                : new KeptTokens(-logRatios / n, k3 / n, squares / n - 1.0, sum / n, largest, changed);
    }
}
