package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.block.BlockSums;
import dev.millrace.corrections.block.TokenBlock;
import dev.millrace.corrections.ratio.LogRatio;

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

    /** Adds up what weights are, block by block. */
    private abstract static class Weights {
        double sum;
        double largest;
        long changed;

        /** Takes the kept tokens among the packed tokens {@code [from, to)}, of which the block is made. */
        abstract void add(TokenBlock block, int from, int to);
    }

    /**
     * Those of weights that are the ratios themselves, token by token, truncated at a cap.
     *
     * @param ratio of the weights, and whose divergence is told
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token
     */
    static KeptTokens truncated(TokenBatch kept, LogRatio ratio, double cap) {
        double logCap = Math.log(cap);
        return of(kept, ratio, new Weights() {
            @Override
            void add(TokenBlock block, int from, int to) {
                largest = Math.max(largest, Math.min(Math.exp(block.max()), cap));
                if (!(block.max() > logCap)) {
                    sum += block.ratioSum();
                    return;
                }
                for (int i = 0; i < block.size(); i++) {
                    block.scratch[i] = Math.min(block.ratio[i], cap);
                }
                sum += BlockSums.sum(block.scratch, block.size());
                changed += BlockSums.countAbove(block.bounded(), block.size(), logCap);
            }
        });
    }

    /**
     * Those of any weights.
     *
     * @param ratio whose divergence is told
     * @param weights one per packed token, not negative
     * @param changed how many of them are not the ratio
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token
     */
    static KeptTokens weighted(TokenBatch kept, LogRatio ratio, float[] weights, long changed) {
        Weights given = new Weights() {
            @Override
            void add(TokenBlock block, int from, int to) {
                int size = 0;
                for (int t = from;
                        t < to;
                        t++) { // no branch: which tokens are masked is what a branch predictor cannot know
                    block.scratch[size] = weights[t];
                    size += kept.trained(t);
                }
                largest = Math.max(largest, BlockSums.max(block.scratch, size));
                sum += BlockSums.sum(block.scratch, size);
            }
        };
        given.changed = changed;
        return of(kept, ratio, given);
    }

    private static KeptTokens of(TokenBatch kept, LogRatio ratio, Weights weights) {
        TokenBlock block = new TokenBlock();
        double logRatios = 0;
        double k3 = 0;
        double squares = 0;
        for (int s = 0; s < kept.sequenceCount(); s++) {
            for (int t = kept.start(s); kept.trainedTokens(s) > 0 && t < kept.end(s); t += TokenBlock.CAPACITY) {
                int end = Math.min(t + TokenBlock.CAPACITY, kept.end(s));
                block.load(kept, ratio, s, t, end);
                logRatios += block.logRatioSum();
                k3 += BlockSums.sum(block.k3, block.size());
                squares += block.ratioSquares();
                weights.add(block, t, end);
            }
        }
        double n = kept.trainedTokens();
        return n == 0
                ? new KeptTokens(0, 0, 0, 0, 0, weights.changed)
                : new KeptTokens(
                        -logRatios / n, k3 / n, squares / n - 1.0, weights.sum / n, weights.largest, weights.changed);
    }
}
