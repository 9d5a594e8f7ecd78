package dev.millrace.replay.retrain;

import java.util.List;
import java.util.Optional;

/**
 * A recorded step with its possible gradients.
 *
 * @param version at its start
 * @param recordedReward batch mean
 * @param updateNorm of the recorded weight change
 * @param reference empty without the task
 * @param variants empty where a gradient is not finite or a stage fails
 */
public record GradientStep(
        long version,
        long batchId,
        double recordedReward,
        double updateNorm,
        Optional<ReferenceGradient> reference,
        List<Optional<VariantGradient>> variants) {

    /**
     * On-policy gradient of fresh groups without corrections, the reference of the others.
     *
     * @param signal unbiased squared norm of the expected gradient; may be below 0
     * @param isSomething has signal and is not zero
     */
    public record ReferenceGradient(int sequences, double norm, double signal, double noise, boolean isSomething) {}
}
