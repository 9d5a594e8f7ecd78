package dev.millrace.generator.run;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waits for what another thread does, and leaves the processor to that thread meanwhile. */
public final class Awaited {
    /** For what takes milliseconds: no test depends on it, it only ends one that would never end. */
    public static final long LIMIT_SECONDS = 300;

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    private Awaited() {}

    /**
     * Returns when the condition holds.
     *
     * @param what in a sentence, for the failure message
     */
    public static void until(String what, BooleanSupplier condition) {
        long from = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - from > TimeUnit.SECONDS.toNanos(LIMIT_SECONDS)) {
                throw new AssertionError("waited " + LIMIT_SECONDS + " s for this: " + what);
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }
}
