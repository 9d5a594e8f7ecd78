package dev.millrace.topology.state;

/**
 * Time in which the pipeline was at work; deadlines are counted in it.
 *
 * <p>Record timestamps move it, so that the same records give the same decisions. A gap between records counts as
 * at most {@code maxGapMs}: a run that was stopped overnight has not kept anybody waiting, and one timestamp from
 * the far future must not expire everything. While nothing arrives, the wall clock stands in ({@link #tick}), and
 * a record that then comes does not count that time again.
 *
 * <p>It begins where the newest thing that waits began to wait, so nothing has to be stored for it. Confined to one task.
 */
public final class ActivityClock {
    private final long maxGapMs;
    private long nowMs;
    private long highestTimestampMs = Long.MIN_VALUE;
    private long idleSinceRecordMs;
    private long lastTickMs;
    private boolean busySinceTick;

    /**
     * @param maxGapMs longest gap that counts in full
     * @param startMs where it goes on
     * @param wallClockMs the time by the wall clock, Unix milliseconds
     */
    public ActivityClock(long maxGapMs, long startMs, long wallClockMs) {
        this.maxGapMs = maxGapMs;
        this.nowMs = startMs;
        this.lastTickMs = wallClockMs;
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
        busySinceTick = true;
    }

    /**
     * It is so late by the wall clock; to be called every second or so.
     *
     * @return true if nothing has arrived since the tick before, so that the time between counts
     */
    public boolean tick(long wallClockMs) {
        boolean idle = !busySinceTick;
        if (idle) {
            long counted = Math.min(Math.max(0, wallClockMs - lastTickMs), maxGapMs); // longer, and the machine slept
            nowMs += counted;
            idleSinceRecordMs += counted;
        }
        lastTickMs = wallClockMs;
        busySinceTick = false;
        return idle;
    }
}
