package dev.millrace.trace;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;

/** An entry of a batch that was found, with its batch. */
public record FoundEntry(BatchEntry entry, Found<LearnerBatch> batch) {
    /** The batch's number. */
    public long batchId() {
        return batch.value().getBatchId();
    }
}
