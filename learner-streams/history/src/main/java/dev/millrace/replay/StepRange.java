package dev.millrace.replay;

import dev.millrace.schemas.LearnerBatch;

/**
 * Range of batches to replay; bounds are inclusive.
 *
 * @param fromMs time of assembly, Unix milliseconds
 * @param fromOffset on {@code batches}
 */
public record StepRange(long fromVersion, long toVersion, long fromMs, long toMs, long fromOffset, long toOffset) {
    public static final StepRange ALL = new StepRange(
            Long.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE);

    public StepRange {
        if (fromVersion > toVersion || fromMs > toMs || fromOffset > toOffset) {
            throw new IllegalArgumentException("a range must not end before it begins: versions " + fromVersion + " to "
                    + toVersion + ", times " + fromMs + " to " + toMs + ", offsets " + fromOffset + " to " + toOffset);
        }
    }

    /** Checks version and time; the reader checks the offset. */
    public boolean contains(LearnerBatch batch) {
        return batch.getAssembledVersion() >= fromVersion
                && batch.getAssembledVersion() <= toVersion
                && batch.getAssembledAtMs() >= fromMs
                && batch.getAssembledAtMs() <= toMs;
    }
}
