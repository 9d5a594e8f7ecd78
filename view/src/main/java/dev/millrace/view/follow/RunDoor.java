package dev.millrace.view.follow;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Opens a run when somebody asks of it, and closes it when nobody has for a while: who has an ended run's folder open keeps it from going on. Thread-safe.
 */
final class RunDoor implements AutoCloseable {
    private static final long IDLE_NANOS = 20_000_000_000L;

    private final RunSource source;
    private @Nullable OpenRun open;
    private int users;
    private long leftAt;

    RunDoor(RunSource source) {
        this.source = source;
    }

    /** Asks of the open run, which is opened if it is not. */
    <T> T ask(Function<OpenRun, T> question) {
        OpenRun run = enter();
        try {
            return question.apply(run);
        } finally {
            leave();
        }
    }

    private synchronized OpenRun enter() {
        OpenRun run = open;
        if (run == null) {
            run = source.open();
            open = run;
        }
        users++;
        return run;
    }

    private synchronized void leave() {
        users--;
        leftAt = System.nanoTime();
    }

    /** Closes the run if nobody has asked of it for a while. */
    synchronized void closeIfIdle() {
        if (users == 0 && open != null && System.nanoTime() - leftAt > IDLE_NANOS) {
            close();
        }
    }

    /** Closes the run if nobody asks of it now; whether it is closed. */
    synchronized boolean closeIfUnused() {
        if (users == 0) {
            close();
        }
        return open == null;
    }

    /** Whether somebody may be adding to the run. To look at the lock of a folder that this process holds would give it up: then nobody is. */
    synchronized boolean mayGrow() {
        return (open == null || !open.holdsFolder()) && source.mayGrow();
    }

    @Override
    public synchronized void close() {
        if (open != null) {
            open.close();
            open = null;
        }
    }
}
