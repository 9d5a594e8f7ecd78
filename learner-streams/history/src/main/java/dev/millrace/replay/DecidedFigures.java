package dev.millrace.replay;

/**
 * Result of applying corrections to one batch. Means over no token are 0 unless noted.
 *
 * @param tokens trainable, and masked of these
 * @param sequences with trainable tokens, and wholly masked of these
 * @param changedWeights tokens with a truncated or zeroed weight
 * @param meanWeight of trained tokens
 * @param maxWeight of trained tokens
 * @param essRatio of raw sequence weights
 * @param essRatioTruncated of truncated ones
 * @param stepScale factor on the learning rate
 * @param secondMoment of the log-ratio, before its mask
 * @param k1 mean of -log ratio over trained tokens: KL(behavior || proximal)
 * @param k3 mean of ratio - 1 - log ratio over trained tokens
 * @param chiSquare mean squared ratio minus 1 over trained tokens
 * @param zeroWeights trained tokens with weight 0
 * @param countingChiSquare chi-square over the other trained tokens; NaN if there are none
 * @param gradientPower mean over trained tokens of (weight · advantage)² · (1 - probability)², a lower bound of the
 *     squared score norm; NaN if there are none
 * @param meanAbsoluteAdvantage over sequences
 * @param changedAdvantages sequences with another advantage than recorded
 * @param breakdown masked sequences and tokens by category
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
