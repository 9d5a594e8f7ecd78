package dev.millrace.cli.train;

import java.util.concurrent.atomic.AtomicInteger;
import org.jline.utils.Signals;

/**
 * Turns Ctrl-C and a polite kill into a request to stop.
 *
 * <p>The JVM's own shutdown hooks run all at once, so that a native library could be unloaded under a running
 * session; a handler that asks the run to end lets everything close in order. A second signal ends the process
 * at once: the log's transactions make that safe too, only the results are not written.
 */
final class StopSignals implements AutoCloseable {
    private static final int INTERRUPTED = 130;

    private final AtomicInteger count = new AtomicInteger();
    private final Object previousInterrupt;
    private final Object previousTerminate;

    private StopSignals(Runnable stop) {
        Runnable handler = () -> {
            if (count.incrementAndGet() == 1) {
                stop.run();
            } else {
                Runtime.getRuntime().halt(INTERRUPTED);
            }
        };
        previousInterrupt = Signals.register("INT", handler);
        previousTerminate = Signals.register("TERM", handler);
    }

    /** Calls {@code stop} at the first signal, on a thread of the JVM's. */
    static StopSignals handledBy(Runnable stop) {
        return new StopSignals(stop);
    }

    /** True once a signal came. */
    boolean received() {
        return count.get() > 0;
    }

    @Override
    public void close() {
        Signals.unregister("INT", previousInterrupt);
        Signals.unregister("TERM", previousTerminate);
    }
}
