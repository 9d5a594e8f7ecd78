package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;

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
     * @param chiSquare mean squared ratio proximal/behavior, minus 1; NaN without tokens
     * @param gradientPower mean over trained tokens of (weight · advantage)² · (1 - probability)²; NaN without tokens
     */
    public record CountingTokens(long zeroWeights, double chiSquare, double gradientPower) {

        static CountingTokens of(StageFacts facts, Decision decision) {
            TokenBatch left = decision.left();
            float[] proximal = facts.vector(StageInput.PROXIMAL);
            float[] behavior = facts.vector(StageInput.BEHAVIOR);
            float[] advantages = decision.perToken();
            long counting = 0;
            double squares = 0;
            double power = 0;
            for (int t = 0; t < advantages.length; t++) {
                float weight = decision.weights()[t];
                if (left.isTrained(t) && weight != 0) {
                    double force = weight * advantages[t] * -Math.expm1(proximal[t]);
                    power += force * force;
                    squares += Math.exp(2.0 * ((double) proximal[t] - behavior[t]));
                    counting++;
                }
            }
            return new CountingTokens(
                    left.trainedTokens() - counting, squares / counting - 1, power / left.trainedTokens());
        }
    }

    /**
     * Divergence and importance weights over the tokens kept by a correction; zeros without tokens. Computes three of
     * the diagnostics' numbers at a quarter of their cost.
     *
     * @param k1 mean of -log ratio
     * @param k3 mean of ratio - 1 - log ratio
     * @param chiSquare mean squared ratio minus 1
     */
    public record KeptTokens(
            double k1, double k3, double chiSquare, double meanWeight, double maxWeight, long changedWeights) {

        /**
         * @param weights one per packed token, not negative
         * @param changed how many are not the ratio
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
                    for (int i = t; i < end; i++) { // branch-free: masks are unpredictable
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
}
