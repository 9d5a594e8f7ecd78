package dev.millrace.replay.retrain;

import java.util.List;
import java.util.Optional;

/**
 * A recorded step under every variant.
 *
 * @param recordedReward batch mean
 * @param recordedStaleness expected by the batch, in versions
 * @param variants empty for one that ended
 */
public record RetrainedStep(
        long version,
        long batchId,
        double recordedReward,
        double recordedStaleness,
        int sequences,
        List<Optional<VariantStep>> variants) {}
