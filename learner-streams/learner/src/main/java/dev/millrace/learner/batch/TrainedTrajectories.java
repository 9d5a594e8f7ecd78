package dev.millrace.learner.batch;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Which trajectories the last batches had: a trajectory is in one batch only, so a batch that has one of another's is a
 * copy of it under another id. Not thread-safe.
 */
final class TrainedTrajectories {
    private static final int BATCHES = 256;

    /** With the rollout, since where the topic has lost its end, another trajectory may lie at the same offset. */
    private record Place(int partition, long offset, String rolloutId) {}

    private final Map<Place, Long> batchOf = new HashMap<>();
    private final Deque<List<Place>> byBatch = new ArrayDeque<>();

    /** @throws RefusedException naming the batch that had one of its trajectories */
    void requireNew(LearnerBatch batch) throws RefusedException {
        for (BatchEntry entry : batch.getEntries()) {
            Long other = batchOf.get(place(entry));
            if (other != null && other != batch.getBatchId()) {
                throw new RefusedException(
                        RefusalReason.IDENTITY,
                        "entries",
                        "the trajectory at partition " + entry.getPartition() + " offset " + entry.getOffset()
                                + " was trained on in batch " + other);
            }
        }
    }

    void add(LearnerBatch batch) {
        List<Place> places =
                batch.getEntries().stream().map(TrainedTrajectories::place).toList();
        places.forEach(place -> batchOf.put(place, batch.getBatchId()));
        byBatch.add(places);
        if (byBatch.size() > BATCHES) {
            byBatch.remove().forEach(batchOf::remove);
        }
    }

    private static Place place(BatchEntry entry) {
        return new Place(entry.getPartition(), entry.getOffset(), entry.getRolloutId());
    }
}
