package dev.millrace.generator.run;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A role on its own thread, as the command line runs it. */
public final class RunningRole {
    private final Runnable stop;
    private final CompletableFuture<Void> ended = new CompletableFuture<>();

    public RunningRole(String name, Runnable run, Runnable stop) {
        this.stop = stop;
        Thread thread = new Thread(
                () -> {
                    try {
                        run.run();
                        ended.complete(null);
                    } catch (Throwable e) {
                        ended.completeExceptionally(e);
                    }
                },
                name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Stops it and waits until it has; throws what it failed with. */
    public void stop() {
        stop.run();
        RuntimeException failure = awaitEnd();
        if (failure != null) {
            throw failure;
        }
    }

    public boolean hasEnded() {
        return ended.isDone();
    }

    /** Waits until it ends by itself; null if it did not fail. */
    public RuntimeException awaitEnd() {
        try {
            ended.orTimeout(Awaited.LIMIT_SECONDS, TimeUnit.SECONDS).join();
            return null;
        } catch (CompletionException e) {
            if (e.getCause() instanceof TimeoutException) {
                throw new AssertionError("the role did not end within " + Awaited.LIMIT_SECONDS + " s", e);
            }
            return e.getCause() instanceof RuntimeException cause ? cause : e;
        }
    }
}
