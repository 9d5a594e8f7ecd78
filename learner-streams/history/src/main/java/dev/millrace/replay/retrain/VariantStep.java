package dev.millrace.replay.retrain;

/**
 * One step of a variant. Absent numbers are NaN.
 *
 * @param isAsRecorded the new weights equal the run's, bit for bit
 * @param weightsSha256 of the new weights
 * @param batchReward mean over its sequences
 * @param rolloutsAsRecorded sequences with recorded tokens, log-probs and reward, bit for bit
 * @param distance L2 distance of the new weights from the recorded ones
 */
public record VariantStep(
        boolean isAsRecorded,
        String weightsSha256,
        Update update,
        double batchReward,
        int rolloutsAsRecorded,
        Estimates estimates,
        double distance) {
    /**
     * The optimizer's step.
     *
     * @param gradNorm before clipping
     * @param clipFraction tokens with a clipped ratio, over the step's updates
     * @param essRatio of raw sequence weights, as decided at the step
     * @param secondMoment of the log ratio before its mask, as decided at the step
     * @param learningRate with all controls; 0 without an update
     */
    public record Update(
            double loss,
            double gradNorm,
            double clipFraction,
            double essRatio,
            double secondMoment,
            double learningRate,
            long tokensTrained) {}

    /**
     * This policy on the batch.
     *
     * @param klToRecorded mean of {@code (log r)² / 2} (k2) over the batch's tokens, r = this policy over the recorded one
     *     of the same version, log r within ±20
     * @param reward {@code Σ w R / Σ w} over sequences, w = this policy over the sampling one
     * @param ess ESS ratio of these weights; near 0 the estimate is meaningless
     */
    public record Estimates(double klToRecorded, double reward, double ess) {}
}
