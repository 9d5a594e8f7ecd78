package dev.millrace.log.scan;

/**
 * A stretch of a partition: offsets {@code [begin, end)}.
 *
 * @param begin first offset that the log still keeps; above 0 if older records were deleted
 * @param end one past the last offset that is looked at
 */
public record OffsetRange(long begin, long end) {
    public OffsetRange {
        if (begin < 0 || end < begin) {
            throw new IllegalArgumentException(
                    "a range of offsets needs 0 <= begin <= end: begin=" + begin + ", end=" + end);
        }
    }

    public boolean holds(long offset) {
        return offset >= begin && offset < end;
    }
}
