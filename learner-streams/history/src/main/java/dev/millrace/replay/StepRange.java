package dev.millrace.replay;

import dev.millrace.schemas.LearnerBatch;

/**
 * Which batches are replayed; all bounds are inclusive.
 *
 * @param fromVersion least version that a batch was assembled against
 * @param toVersion largest
 * @param fromMs least time of assembly, Unix milliseconds
 * @param toMs largest
 * @param fromOffset least offset on {@code batches}
 * @param toOffset largest
 */
public record StepRange(long fromVersion, long toVersion, long fromMs, long toMs, long fromOffset, long toOffset) {
    /** Every batch. */
    public static final StepRange ALL = new StepRange(
            Long.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE);

    public StepRange {
        if (fromVersion > toVersion || fromMs > toMs || fromOffset > toOffset) {
            throw new IllegalArgumentException("a range must not end before it begins: versions " + fromVersion + " to "
                    + toVersion + ", times " + fromMs + " to " + toMs + ", offsets " + fromOffset + " to " + toOffset);
        }
    }

    /** Whether version and time of a batch are in it; its offset is for the reader to look at. */
    public boolean contains(LearnerBatch batch) {
        return batch.getAssembledVersion() >= fromVersion
                && batch.getAssembledVersion() <= toVersion
                && batch.getAssembledAtMs() >= fromMs
                && batch.getAssembledAtMs() <= toMs;
    }
}
