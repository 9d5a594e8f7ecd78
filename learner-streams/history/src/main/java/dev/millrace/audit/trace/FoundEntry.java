package dev.millrace.audit.trace;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;

/**
 * An entry of a batch that was found, with its batch.
 *
 * @param index which of the batch's entries it is
 */
public record FoundEntry(BatchEntry entry, int index, Found<LearnerBatch> batch) {
    /** The batch's number. */
    public long batchId() {
        return batch.value().getBatchId();
    }

    /**
     * A dead letter that was found.
     *
     * @param newOffset where its record lies since it was redriven; -1 if it was not
     */
    public record FoundDeadLetter(DeadLetter letter, long newOffset) {}
}
