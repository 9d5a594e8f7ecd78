package dev.millrace.replay.retrain;

import java.util.List;
import java.util.Optional;

/**
 * A recorded step, and the gradients that it could have been taken by.
 *
 * @param version that it began with
 * @param batchId the batch's number
 * @param recordedReward mean over the batch's sequences
 * @param updateNorm how far the recorded step moved the weights
 * @param reference empty if the task is not at hand
 * @param variants one for each variant, in their order; empty where the gradient is not finite, or a stage fails
 */
public record GradientStep(
        long version,
        long batchId,
        double recordedReward,
        double updateNorm,
        Optional<ReferenceGradient> reference,
        List<Optional<VariantGradient>> variants) {

    public GradientStep {
        variants = List.copyOf(variants);
    }

    /**
     * The gradient of fresh groups that the very weights sampled, without corrections: what the others are held against.
     *
     * @param sequences that were sampled
     * @param norm of it
     * @param signal unbiased estimate of the squared norm of the gradient that it estimates; below 0 where there is nothing but
     *     noise
     * @param noise its variance
     * @param isSomething whether others can be held against it: it has signal, and is not nothing
     */
    public record ReferenceGradient(int sequences, double norm, double signal, double noise, boolean isSomething) {}
}
