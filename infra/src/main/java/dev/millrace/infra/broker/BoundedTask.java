package dev.millrace.infra.broker;

import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;

/** One piece of work on a thread of its own, because Kafka's start and stop know no limit of time. */
final class BoundedTask {
    private final Thread thread;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    BoundedTask(String name, Runnable work) {
        thread = new Thread(
                () -> {
                    try {
                        work.run();
                    } catch (Throwable e) { // an error of the broker is reported like any other failure
                        failure.set(e);
                    }
                },
                name);
        thread.setDaemon(true);
        thread.start();
    }

    /**
     * Waits for the end; an interruption stops the waiting and stays set.
     *
     * @return whether the work is done
     */
    boolean await(long limitMs) {
        try {
            thread.join(limitMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return !thread.isAlive();
    }

    /** What the work threw, if it did. */
    Optional<Throwable> failure() {
        return Optional.ofNullable(failure.get());
    }
}
