package dev.millrace.cli;

import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.jline.utils.Signals;

/**
 * Turns Ctrl-C and SIGTERM into a request to stop.
 *
 * <p>JVM shutdown hooks run concurrently, so a native library could be unloaded under a running session; here the run
 * closes in order. A second signal ends the process at once: transactions keep the log safe, but results are not
 * written.
 */
public final class StopSignals {
    /** Exit status of a command that a signal stopped. */
    public static final int INTERRUPTED = 130;

    private final AtomicInteger count = new AtomicInteger();
    private final Runnable stop;
    private final Object previousInterrupt;
    private final Object previousTerminate;

    private StopSignals(Runnable stop) {
        this.stop = stop;
        previousInterrupt = Signals.register("INT", this::received);
        previousTerminate = Signals.register("TERM", this::received);
    }

    private void received() {
        if (count.incrementAndGet() > 1) {
            Runtime.getRuntime().halt(INTERRUPTED);
        }
        stop.run();
    }

    /**
     * Handles the signals during an action.
     *
     * @param stop called at the first signal, on a JVM thread
     */
    public static <T> T during(Callable<T> work, Runnable stop) throws Exception {
        StopSignals taken = new StopSignals(stop);
        try {
            return work.call();
        } finally {
            taken.giveBack();
        }
    }

    private void giveBack() {
        Signals.unregister("INT", previousInterrupt);
        Signals.unregister("TERM", previousTerminate);
    }
}
