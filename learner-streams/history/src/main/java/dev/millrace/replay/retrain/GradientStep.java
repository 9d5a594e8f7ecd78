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
}
