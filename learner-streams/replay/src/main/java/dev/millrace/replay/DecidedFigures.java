package dev.millrace.replay;

/**
 * What corrections would have made of one batch.
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
 * @param meanAbsoluteAdvantage over sequences
 * @param changedAdvantages sequences whose advantage is not the recorded one
 * @param breakdown who was masked
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
        double meanAbsoluteAdvantage,
        long changedAdvantages,
        MaskBreakdown breakdown) {}
