package dev.millrace.replay;

/**
 * Result of applying corrections to one batch.
 *
 * @param tokens that the trajectories leave to train on, and how many of them are masked
 * @param sequences with such tokens, and how many of them are masked altogether
 * @param changedWeights tokens whose importance weight was truncated or set to 0
 * @param meanWeight of the tokens that are trained on; 0 if there are none
 * @param maxWeight the largest of them
 * @param essRatio effective sample size of the raw sequence weights over their number
 * @param essRatioTruncated the same of the truncated ones
 * @param stepScale factor on the learning rate
 * @param secondMoment of the log-ratio, before the second-moment mask
 * @param k1 mean of -log ratio over the tokens that are trained on: KL(behavior || proximal)
 * @param k3 mean of ratio - 1 - log ratio over them
 * @param chiSquare mean squared ratio minus 1 over them
 * @param zeroWeights tokens that are trained on with a weight of 0, so that they have no effect
 * @param countingChiSquare chi-square over the others of those that are trained on; NaN if there are none
 * @param gradientPower mean over the trained tokens of (weight times advantage)² times (1 - probability)², a lower
 *     bound of the squared norm of the token's score: the gradient's size and noise, as far as a forward pass can show
 *     them; NaN if there are none
 * @param meanAbsoluteAdvantage over sequences
 * @param changedAdvantages sequences whose advantage is not the recorded one
 * @param breakdown the masked sequences and tokens by category
 */
public record DecidedFigures(
        MaskedShare tokens,
        MaskedShare sequences,
        long changedWeights,
        double meanWeight,
        double maxWeight,
        double essRatio,
        double essRatioTruncated,
        double stepScale,
        double secondMoment,
        double k1,
        double k3,
        double chiSquare,
        long zeroWeights,
        double countingChiSquare,
        double gradientPower,
        double meanAbsoluteAdvantage,
        long changedAdvantages,
        MaskBreakdown breakdown) {}
