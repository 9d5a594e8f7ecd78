package dev.millrace.workloads;

import dev.millrace.workloads.topology.LoadException;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

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
        await(what, limit, condition, () -> "");
    }

    /** @param seen what to say beside that, after a colon, if it is not so in time */
    public static void await(String what, Duration limit, BooleanSupplier condition, Supplier<String> seen)
            throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - deadline > 0) {
                String said = seen.get();
                throw new LoadException(
                        "waited " + limit.toSeconds() + " s in vain for " + what + (said.isEmpty() ? "" : ": " + said));
            }
            Thread.sleep(LOOK_EVERY_MS);
        }
    }
}
