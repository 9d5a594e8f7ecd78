package dev.millrace.replay.retrain;

import java.util.List;
import java.util.Optional;

/**
 * A recorded step, taken again by every course.
 *
 * @param version that it made
 * @param batchId the batch's number
 * @param recordedReward mean over the batch's sequences
 * @param recordedStaleness mean in versions, as recorded
 * @param sequences of the batch
 * @param courses one for each course, in their order; empty for one that has ended
 */
public record RetrainedStep(
        long version,
        long batchId,
        double recordedReward,
        double recordedStaleness,
        int sequences,
        List<Optional<VariantStep>> courses) {

    public RetrainedStep {
        courses = List.copyOf(courses);
    }
}
