package dev.millrace.topology.state;

/**
 * Clock of the time in which the pipeline was active; deadlines use it.
 *
 * <p>Record timestamps move it, so that the same records give the same decisions. A gap between records counts as at
 * most {@code maxGapMs}: a run that was stopped overnight must not expire its waits, nor may one timestamp from the far
 * future. While no records arrive, the wall clock advances it ({@link #idle}), and the next record does not count that
 * time again.
 *
 * <p>It starts at the time when the newest waiting record began to wait, so it needs no stored state. Confined to one
 * task.
 */
public final class ActivityClock {
    private final long maxGapMs;
    private long nowMs;
    private long highestTimestampMs = Long.MIN_VALUE;
    private long idleSinceRecordMs;

    /**
     * @param maxGapMs longest gap that counts in full
     * @param startMs the time to resume from
     */
    public ActivityClock(long maxGapMs, long startMs) {
        this.maxGapMs = maxGapMs;
        this.nowMs = startMs;
    }

    /** Milliseconds of activity so far. */
    public long nowMs() {
        return nowMs;
    }

    /** A record with this timestamp arrived; timestamps may run backwards and then count nothing. */
    public void record(long timestampMs) {
        if (highestTimestampMs != Long.MIN_VALUE && timestampMs > highestTimestampMs) {
            // a far future minus a far past overflows to below 0; either way it is a gap
            long gap = timestampMs - highestTimestampMs;
            long counted = gap < 0 ? maxGapMs : Math.min(gap, maxGapMs);
            nowMs += Math.max(0, counted - idleSinceRecordMs);
        }
        highestTimestampMs = Math.max(highestTimestampMs, timestampMs);
        idleSinceRecordMs = 0;
    }

    /** Advances the clock by idle time that counts as activity. */
    public void idle(long countedMs) {
        nowMs += countedMs;
        idleSinceRecordMs += countedMs;
    }
}
