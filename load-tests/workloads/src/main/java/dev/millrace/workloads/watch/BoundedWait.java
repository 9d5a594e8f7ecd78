package dev.millrace.workloads.watch;

import dev.millrace.workloads.synthetic.LoadException;
import java.time.Duration;
import java.util.function.BooleanSupplier;

/** Waiting with a limit. */
public final class BoundedWait {
    private static final long LOOK_EVERY_MS = 5;

    private BoundedWait() {}

    /**
     * Waits until something is so.
     *
     * @throws LoadException if it is not so in time
     */
    public static void await(String what, Duration limit, BooleanSupplier condition) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - deadline > 0) {
                throw new LoadException("waited " + limit.toSeconds() + " s in vain for " + what);
            }
            Thread.sleep(LOOK_EVERY_MS);
        }
    }
}
