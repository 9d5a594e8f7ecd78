package dev.millrace.runtime.pipeline;

import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One-shot request to stop in order, made by any thread and polled by the running role. Thread-safe. */
public final class StopRequest {
    private final CountDownLatch made = new CountDownLatch(1);
    /** Waits for something outside to come up, and is to be interrupted; null while nobody does. Guarded by this. */
    private @Nullable Thread starting;

    /** Asks to stop; more than once is as once. */
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
     * Does what may wait long before there is anything to stop, such as a first contact with a cluster; a request
     * interrupts it. What it made is returned even if a request came in its last moment.
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
                    Thread.interrupted(); // it has done its work, and closing in order must not be cut short by it
                }
            }
        }
    }

    /** True once it was made. */
    public boolean isMade() {
        return made.getCount() == 0;
    }

    /** Waits for it, at most so long; returns whether it was made. */
    public boolean await(long limitMs) throws InterruptedException {
        return made.await(limitMs, TimeUnit.MILLISECONDS);
    }
}
