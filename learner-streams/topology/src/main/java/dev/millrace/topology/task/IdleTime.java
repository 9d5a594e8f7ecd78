package dev.millrace.topology.task;

/**
 * How long nothing has arrived, by the wall clock.
 *
 * <p>Looked at every second or so; a second in which something arrived counts nothing, since the records' own
 * timestamps move the task's clock then. Confined to one task.
 */
final class IdleTime {
    /** Something arrived since the last look. */
    static final long BUSY = -1;

    private final long maxGapMs;
    private long lastLookMs;
    private boolean isBusy;

    /** @param maxGapMs longest time between two looks that counts; longer, and the machine slept */
    IdleTime(long maxGapMs, long wallClockMs) {
        this.maxGapMs = maxGapMs;
        this.lastLookMs = wallClockMs;
    }

    void arrived() {
        isBusy = true;
    }

    /** The time since the last look as far as it counts, or {@link #BUSY}. */
    long elapse(long wallClockMs) {
        long idle = isBusy ? BUSY : Math.min(Math.max(0, wallClockMs - lastLookMs), maxGapMs);
        lastLookMs = wallClockMs;
        isBusy = false;
        return idle;
    }
}
