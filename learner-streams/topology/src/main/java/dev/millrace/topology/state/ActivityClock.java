package dev.millrace.topology.state;

/**
 * Time in which the pipeline was at work; deadlines are counted in it.
 *
 * <p>Record timestamps move it, so that the same records give the same decisions. A gap between records counts as
 * at most {@code maxGapMs}: a run that was stopped overnight has not kept anybody waiting, and one timestamp from
 * the far future must not expire everything. While nothing arrives, the wall clock stands in ({@link #idle}), and
 * a record that then comes does not count that time again.
 *
 * <p>It begins where the newest thing that waits began to wait, so nothing has to be stored for it. Confined to one task.
 */
public final class ActivityClock {
    private final long maxGapMs;
    private long nowMs;
    private long highestTimestampMs = Long.MIN_VALUE;
    private long idleSinceRecordMs;

    /**
     * @param maxGapMs longest gap that counts in full
     * @param startMs where it goes on
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

    /** Nothing has arrived for so long, as far as it counts. */
    public void idle(long countedMs) {
        nowMs += countedMs;
        idleSinceRecordMs += countedMs;
    }
}
