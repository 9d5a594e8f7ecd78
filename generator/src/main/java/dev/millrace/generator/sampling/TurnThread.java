package dev.millrace.generator.sampling;

import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Thread of a {@link TurnEngine}. Runs rounds until closed or failed, and gives later callers the reason.
 * Thread-safe.
 */
public final class TurnThread implements AutoCloseable {
    private static final long CLOSE_LIMIT_MS = 10_000;

    /** Part of the work, after which it is looked whether to go on. */
    @FunctionalInterface
    public interface Round {
        /** @throws InterruptedException if the engine is closed meanwhile */
        void work() throws InterruptedException;
    }

    private final String engine;
    private final Thread thread;
    private volatile boolean closed;
    private volatile @Nullable Throwable failure;

    /**
     * @param name of the thread
     * @param round done again and again
     * @param end what is done once at the end, with what is to be told to those who still wait
     */
    public TurnThread(String name, String engine, Round round, Consumer<IllegalStateException> end) {
        this.engine = engine;
        this.thread = new Thread(() -> work(round, end), name);
        thread.setDaemon(true); // what it holds is asked for again
    }

    /** Begins; the engine is whole. */
    public void start() {
        thread.start();
    }

    private void work(Round round, Consumer<IllegalStateException> end) {
        try {
            while (!closed) {
                round.work();
            }
        } catch (InterruptedException e) {
            closed = true;
        } catch (RuntimeException | Error e) {
            failure = e;
        } finally {
            end.accept(over());
        }
    }

    /** Whether it works no longer, or is about to end: who has asked by then may not have been seen. */
    public boolean isOver() {
        return closed || failure != null;
    }

    /** Why there is no answer any more. */
    public IllegalStateException over() {
        Throwable cause = failure;
        return cause == null
                ? new IllegalStateException("the engine is being closed")
                : new IllegalStateException(engine + " cannot be used: " + cause.getMessage(), cause);
    }

    /** Throws what it broke down with, if it did. */
    public void requireAlive() {
        if (failure != null) {
            throw over();
        }
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        try {
            thread.join(CLOSE_LIMIT_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
