package dev.millrace.runtime.pipeline;

import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jline.utils.Signals;

/**
 * Turns Ctrl-C and a polite kill into a request to stop.
 *
 * <p>The JVM's own shutdown hooks run all at once, so that a native library could be unloaded under a running
 * session; a handler that asks the run to end lets everything close in order. A second signal ends the process
 * at once: the log's transactions make that safe too, only the results are not written.
 */
public final class StopSignals implements AutoCloseable {
    /** Exit status of a process that a signal ended, as shells give it. */
    public static final int INTERRUPTED = 130;

    private final AtomicInteger count = new AtomicInteger();
    private final CountDownLatch first = new CountDownLatch(1);
    /** Waits for something outside to come up, and is to be interrupted; null while nobody does. Guarded by this. */
    private Thread starting;

    private final Object previousInterrupt;
    private final Object previousTerminate;

    /** Takes the signals over until {@link #close}. */
    public StopSignals() {
        Runnable handler = () -> {
            if (count.incrementAndGet() > 1) {
                Runtime.getRuntime().halt(INTERRUPTED);
            }
            first.countDown();
            interruptStart();
        };
        previousInterrupt = Signals.register("INT", handler);
        previousTerminate = Signals.register("TERM", handler);
    }

    private synchronized void interruptStart() {
        if (starting != null) {
            starting.interrupt();
        }
    }

    /**
     * Does what may wait long before there is anything to stop, such as a first contact with a cluster; a signal
     * interrupts it. What it made is returned even if a signal came in its last moment.
     *
     * @throws StoppedException if a signal came first
     */
    public <T> T starting(Callable<T> start) throws Exception {
        synchronized (this) {
            if (received()) {
                throw new StoppedException(null);
            }
            starting = Thread.currentThread();
        }
        try {
            return start.call();
        } catch (Exception e) {
            throw received() ? new StoppedException(e) : e;
        } finally {
            synchronized (this) {
                starting = null;
                if (received()) {
                    Thread.interrupted(); // it has done its work, and closing in order must not be cut short by it
                }
            }
        }
    }

    /** True once a signal came. */
    public boolean received() {
        return count.get() > 0;
    }

    /** Waits for the first signal, at most so long; returns whether one has come. */
    public boolean await(long limitMs) throws InterruptedException {
        return first.await(limitMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public void close() {
        Signals.unregister("INT", previousInterrupt);
        Signals.unregister("TERM", previousTerminate);
    }
}
