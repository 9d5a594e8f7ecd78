package dev.millrace.runtime.train;

import java.util.function.LongSupplier;

/**
 * Running time of an invocation, independent of wall clock changes: setting the clock must neither end a run early nor
 * extend it.
 */
final class ElapsedTime {
    private static final double NANOS = 1e9;

    private final LongSupplier nanos;
    private final long fromNanos;

    /**
     * @param startedAtMs wall-clock start of the invocation; a future time counts as now
     * @param nowMs current wall-clock time
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
