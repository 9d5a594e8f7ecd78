package dev.millrace.runtime.train;

import java.util.function.LongSupplier;

/**
 * Running time of an invocation, independent of wall clock changes: a clock set forward must not end a run early, and one set back must
 * not extend it.
 */
final class ElapsedTime {
    private static final double NANOS = 1e9;

    private final LongSupplier nanos;
    private final long fromNanos;

    /**
     * @param startedAtMs when the invocation began, by the clock; one that lies in the future counts as now
     * @param nowMs what the clock says now
     * @param nanos a clock that only runs forward, such as {@link System#nanoTime}
     */
    ElapsedTime(long startedAtMs, long nowMs, LongSupplier nanos) {
        this.nanos = nanos;
        this.fromNanos = nanos.getAsLong() - 1_000_000 * Math.max(0, nowMs - startedAtMs);
    }

    double seconds() {
        return (nanos.getAsLong() - fromNanos) / NANOS;
    }
}
