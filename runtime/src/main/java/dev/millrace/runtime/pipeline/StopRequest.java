package dev.millrace.runtime.pipeline;

import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One-shot request to stop in order, made by any thread and polled by the running role. Thread-safe. */
public final class StopRequest {
    private final CountDownLatch made = new CountDownLatch(1);
    /** Thread that waits for an external service and may be interrupted; null if there is none. Guarded by this. */
    private @Nullable Thread starting;

    /** Requests a stop. Idempotent. */
    public void make() {
        made.countDown();
        interruptStart();
    }

    private synchronized void interruptStart() {
        if (starting != null) {
            starting.interrupt();
        }
    }

    /**
     * Runs a start-up action that may block, such as a first contact with a cluster; a stop request interrupts it.
     * Returns the result even if the request comes at the last moment.
     *
     * @throws StoppedException if a request came first
     */
    public <T> T starting(Callable<T> start) throws Exception {
        synchronized (this) {
            if (isMade()) {
                throw new StoppedException(null);
            }
            starting = Thread.currentThread();
        }
        try {
            return start.call();
        } catch (Exception e) {
            throw isMade() ? new StoppedException(e) : e;
        } finally {
            synchronized (this) {
                starting = null;
                if (isMade()) {
                    Thread.interrupted(); // the action is complete, and the interrupt must not cut the orderly close
                    // short
                }
            }
        }
    }

    public boolean isMade() {
        return made.getCount() == 0;
    }

    /** Waits for a stop request with a time limit; returns whether there was one. */
    public boolean await(long limitMs) throws InterruptedException {
        return made.await(limitMs, TimeUnit.MILLISECONDS);
    }
}
