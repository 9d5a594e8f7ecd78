package dev.millrace.replay.retrain;

/**
 * One step of one variant. A number that there is not is NaN.
 *
 * @param isAsRecorded whether the weights that it made are the run's, bit for bit
 * @param weightsSha256 identity of the weights that it made
 * @param loss of the step
 * @param gradNorm of the gradient before clipping
 * @param clipFraction share of the tokens whose ratio the objective clipped, over the step's updates
 * @param essRatio effective sample size of the raw sequence weights, as decided at the step
 * @param secondMoment of the log ratio, before its mask, as decided at the step
 * @param learningRate that was used, all controls included; 0 without an update
 * @param tokensTrained tokens that it trained on
 * @param batchReward mean reward of the sequences that it learnt from
 * @param rolloutsAsRecorded how many of them are the recorded ones, tokens, log-probs and reward, bit for bit
 * @param klToRecorded mean of {@code (log r)² / 2} (k2) over the batch's tokens, r = this variant's policy over the recorded one
 *     of the same version: about KL(recorded, this) while they are close, on what recorded versions sampled; log r is kept
 *     within ±20
 * @param rewardEstimate {@code Σ w R / Σ w} over the batch's sequences, w = this variant's policy over the one that sampled:
 *     what the batch says of this policy's reward
 * @param estimateEss effective sample size over number of these weights; near 0 the estimate says nothing
 * @param distance L2 distance of the weights that it made from the recorded ones
 */
public record VariantStep(
        boolean isAsRecorded,
        String weightsSha256,
        double loss,
        double gradNorm,
        double clipFraction,
        double essRatio,
        double secondMoment,
        double learningRate,
        long tokensTrained,
        double batchReward,
        int rolloutsAsRecorded,
        double klToRecorded,
        double rewardEstimate,
        double estimateEss,
        double distance) {}
