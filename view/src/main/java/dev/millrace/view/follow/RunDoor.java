package dev.millrace.view.follow;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Opens a run when somebody asks of it, and closes it when it is to be looked at anew and nobody asks. Thread-safe. */
final class RunDoor implements AutoCloseable {
    private final RunSource source;
    private @Nullable OpenRun open;
    private int users;

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
    }

    /** Closes the run if nobody asks of it now; whether it is closed. */
    synchronized boolean closeIfUnused() {
        if (users == 0) {
            close();
        }
        return open == null;
    }

    @Override
    public synchronized void close() {
        if (open != null) {
            open.close();
            open = null;
        }
    }
}
