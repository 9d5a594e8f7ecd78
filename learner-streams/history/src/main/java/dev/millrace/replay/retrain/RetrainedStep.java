package dev.millrace.replay.retrain;

import java.util.List;
import java.util.Optional;

/**
 * A recorded step, taken again by every variant.
 *
 * @param version that it made
 * @param batchId the batch's number
 * @param recordedReward mean over the batch's sequences
 * @param recordedStaleness mean in versions at the step, as the recorded batch expected it
 * @param sequences of the batch
 * @param variants one for each variant, in their order; empty for one that has ended
 */
public record RetrainedStep(
        long version,
        long batchId,
        double recordedReward,
        double recordedStaleness,
        int sequences,
        List<Optional<VariantStep>> variants) {

    public RetrainedStep {
        variants = List.copyOf(variants);
    }
}
