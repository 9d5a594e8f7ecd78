package dev.millrace.chaos.process;

import dev.millrace.chaos.ChaosException;
import java.io.IOException;
import java.util.concurrent.TimeUnit;

/**
 * A process that stands still (SIGSTOP) until this is closed, or until this process is gone: one that is suspended cannot see for
 * itself that it was left alone.
 */
public final class Suspension implements AutoCloseable {
    private static final long LIMIT_S = 60;
    /** Waits for the end of its input, which also comes when the process at the other end is killed. */
    private static final String GUARD = "kill -STOP $1 && echo && cat > /dev/null; kill -CONT $1";

    private final long pid;
    private final Process guard;

    private Suspension(long pid, Process guard) {
        this.pid = pid;
        this.guard = guard;
    }

    /** Suspends a process of ours. */
    public static Suspension of(long pid) {
        try {
            Process guard = new ProcessBuilder("sh", "-c", GUARD, "guard", Long.toString(pid))
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            guard.getInputStream().read(); // the line that says it was sent, or the end where the process is gone
            return new Suspension(pid, guard);
        } catch (IOException e) {
            throw new ChaosException("signals are sent by sh, which did not start: " + e.getMessage(), e);
        }
    }

    /** Lets it go on. */
    @Override
    public void close() {
        try {
            guard.getOutputStream().close();
            if (!guard.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
                throw new ChaosException("process " + pid + " could not be let go on within " + LIMIT_S + " s");
            }
        } catch (IOException e) {
            throw new ChaosException("process " + pid + " could not be let go on: " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
