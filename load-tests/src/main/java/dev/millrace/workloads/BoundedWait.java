package dev.millrace.workloads;

import dev.millrace.workloads.topology.LoadException;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

public final class BoundedWait {
    private static final long LOOK_EVERY_MS = 5;

    private BoundedWait() {}

    /** Waits until the thread ends, or this one is interrupted, which then stays interrupted. */
    public static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** @throws LoadException if the condition does not hold within the limit */
    public static void await(String what, Duration limit, BooleanSupplier condition) throws InterruptedException {
        await(what, limit, condition, () -> "");
    }

    /** @param seen appended to the message on timeout */
    public static void await(String what, Duration limit, BooleanSupplier condition, Supplier<String> seen)
            throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - deadline > 0) {
                String said = seen.get();
                throw new LoadException("timed out after " + limit.toSeconds() + " s waiting for " + what
                        + (said.isEmpty() ? "" : ": " + said));
            }
            Thread.sleep(LOOK_EVERY_MS);
        }
    }
}
