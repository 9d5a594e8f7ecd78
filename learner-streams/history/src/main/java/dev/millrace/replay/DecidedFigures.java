package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockExp;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;

/**
 * Result of applying corrections to one batch.
 *
 * @param sequences with trainable tokens, and wholly masked of these
 * @param breakdown masked sequences and tokens by category
 */
public record DecidedFigures(
        MaskedShare tokens,
        MaskedShare sequences,
        MaskBreakdown breakdown,
        KeptTokens kept,
        CountingTokens counting,
        StepSize step,
        Advantages advantages) {

    /**
     * Sample size and step; NaN without one.
     *
     * @param essRatio of raw sequence weights
     * @param scale factor on the learning rate
     * @param secondMoment of the log-ratio, before its mask
     */
    public record StepSize(double essRatio, double essRatioTruncated, double scale, double secondMoment) {}

    /**
     * Advantages of the sequences.
     *
     * @param meanAbsolute 0 without a sequence
     * @param changed sequences with another advantage than recorded
     */
    public record Advantages(double meanAbsolute, long changed) {}

    /**
     * Trained tokens with a weight.
     *
     * @param zeroWeights trained tokens without one
     * @param chiSquare mean squared ratio proximal/behavior, minus 1, with log ratios bounded by {@link LogRatio#BOUND}; NaN
     *     without tokens
     * @param gradientPower mean over trained tokens of (weight · advantage)² · (1 - probability)²; NaN without tokens
     */
    public record CountingTokens(long zeroWeights, double chiSquare, double gradientPower) {}

    /**
     * Divergence and importance weights over the tokens kept by a correction; zeros without tokens. Computes three of
     * the diagnostics' numbers at a quarter of their cost.
     *
     * @param k1 mean of -log ratio
     * @param k3 mean of ratio - 1 - log ratio
     * @param chiSquare mean squared ratio minus 1
     */
    public record KeptTokens(
            double k1, double k3, double chiSquare, double meanWeight, double maxWeight, long changedWeights) {}

    /** What is computed per kept token, in one pass. */
    record TokenFigures(KeptTokens kept, CountingTokens counting) {
        /**
         * @param anchor proximal/behavior
         * @param weights one per packed token, not negative
         * @param advantages one per packed token
         * @param changed how many weights are not the ratio
         * @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token
         */
        static TokenFigures of(TokenBatch kept, LogRatio anchor, float[] weights, float[] advantages, long changed) {
            Sums sums = new Sums();
            TokenBlock block = new TokenBlock();
            for (int s = 0; s < kept.sequenceCount(); s++) {
                for (int t = kept.start(s); kept.trainedTokens(s) > 0 && t < kept.end(s); t += TokenBlock.CAPACITY) {
                    int end = Math.min(t + TokenBlock.CAPACITY, kept.end(s));
                    block.load(kept, anchor, s, t, end);
                    sums.add(block, kept, t, end, weights, advantages);
                }
            }
            return sums.figures(kept.trainedTokens(), changed);
        }
    }

    private static final class Sums {
        private final double[] forces = new double[TokenBlock.CAPACITY + 1];
        private final double[] probabilities = new double[TokenBlock.CAPACITY + 1];
        private double logRatios;
        private double k3;
        private double squares;
        private double weights;
        private double largest;
        private long weighted;
        private double weightedSquares;
        private double power;

        void add(TokenBlock block, TokenBatch kept, int from, int end, float[] ofTokens, float[] advantages) {
            logRatios += block.logRatioSum();
            k3 += BlockSums.sum(block.k3, block.size());
            squares += block.ratioSquares();
            int size = 0;
            int nonzero = 0;
            for (int i = from; i < end; i++) { // branch-free: masks are unpredictable
                block.scratch[size] = ofTokens[i];
                forces[size] = (double) ofTokens[i] * advantages[i];
                nonzero += kept.trained(i) & (ofTokens[i] == 0 ? 0 : 1);
                size += kept.trained(i);
            }
            largest = Math.max(largest, BlockSums.max(block.scratch, size));
            weights += BlockSums.sum(block.scratch, size);
            weighted += nonzero;
            weightedSquares += nonzero == size ? block.ratioSquares() : squaresOfWeighted(block, size);
            BlockExp.expOfAny(block.target, block.scratch, probabilities, size);
            for (int i = 0; i < size; i++) {
                forces[i] *= 1.0 - probabilities[i];
            }
            power += BlockSums.sumOfSquares(forces, size);
        }

        private static double squaresOfWeighted(TokenBlock block, int size) {
            double sum = 0;
            for (int i = 0; i < size; i++) {
                sum += block.scratch[i] == 0 ? 0 : block.ratio[i] * block.ratio[i];
            }
            return sum;
        }

        TokenFigures figures(double tokens, long changed) {
            return new TokenFigures(
                    tokens == 0
                            ? new KeptTokens(0, 0, 0, 0, 0, changed)
                            : new KeptTokens(
                                    -logRatios / tokens,
                                    k3 / tokens,
                                    squares / tokens - 1.0,
                                    weights / tokens,
                                    largest,
                                    changed),
                    new CountingTokens((long) tokens - weighted, weightedSquares / weighted - 1.0, power / tokens));
        }
    }
}
