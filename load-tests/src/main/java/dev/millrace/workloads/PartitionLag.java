package dev.millrace.workloads;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * How far a reader is behind the end of one partition, in records and in seconds.
 *
 * <p>Seconds are since the end first lay beyond what the reader has committed, from a history of where the end was when.
 * Confined to one thread.
 */
final class PartitionLag {
    private record End(long nanos, long offset) {}

    private final Deque<End> history = new ArrayDeque<>();
    private long end;
    private long committed;

    /** The end of the partition is here now. */
    void end(long nowNanos, long offset) {
        if (history.isEmpty() || offset > end) {
            history.addLast(new End(nowNanos, offset));
            end = offset;
        }
    }

    /** The reader has committed everything before this offset. */
    void committed(long offset) {
        committed = offset;
        while (!history.isEmpty() && history.peekFirst().offset() <= offset) {
            history.removeFirst();
        }
    }

    long records() {
        return Math.max(0, end - committed);
    }

    double seconds(long nowNanos) {
        return history.isEmpty() ? 0 : (nowNanos - history.peekFirst().nanos()) / 1e9;
    }
}
