package dev.millrace.workloads.topology;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * When what happened to each rollout of a load, in {@link System#nanoTime()}: by index, 0 where it has not happened.
 *
 * <p>Thread-safe; who writes an entry writes it once.
 */
public final class Timeline {
    private final Schedule schedule;
    private final AtomicLongArray scored;
    private volatile long startNanos;

    /** @param schedule of at most 2^31 - 2 records */
    public Timeline(Schedule schedule) {
        this.schedule = schedule;
        this.scored = new AtomicLongArray(Math.toIntExact(schedule.count()));
    }

    /** The schedule begins now. */
    void begin(long nowNanos) {
        startNanos = nowNanos;
    }

    /** When a rollout was to be published. */
    public long intended(long index) {
        return startNanos + schedule.nanos(index);
    }

    /** The rollout and its score are both on the log since now. */
    void scored(long index, long nowNanos) {
        scored.set((int) index, nowNanos);
    }

    /** Since when a rollout and its score have both been on the log; 0 if they are not. */
    public long scoredAt(long index) {
        return scored.get((int) index);
    }
}
