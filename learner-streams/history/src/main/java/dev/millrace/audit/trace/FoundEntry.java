package dev.millrace.audit.trace;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;

/** A found batch entry. */
public record FoundEntry(BatchEntry entry, int index, Found<LearnerBatch> batch) {
    public long batchId() {
        return batch.value().getBatchId();
    }

    /** @param newOffset of the redriven record; -1 if not redriven */
    public record FoundDeadLetter(DeadLetter letter, long newOffset) {}
}
