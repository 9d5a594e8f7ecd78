package dev.millrace.learner;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** One-shot stop flag: set once, by any thread, for the thread that runs the learner. */
final class StopSignal {
    private final CountDownLatch stopping = new CountDownLatch(1);
    private volatile boolean stopped;
    /** Interrupts the running thread's wait. */
    private volatile Runnable wakeup = () -> {};

    boolean isStopped() {
        return stopped;
    }

    /** Sets the flag and ends the current wait. */
    void stop() {
        stopped = true;
        stopping.countDown();
        wakeup.run();
    }

    /** Sets the action that ends a wait; call it before the first wait. */
    void wakes(Runnable newWakeup) {
        wakeup = newWakeup;
    }

    /** Waits until the flag is set or the limit is over. An interrupt sets the flag too. */
    void await(Duration limit) {
        try {
            stopping.await(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            stopped = true;
        }
    }
}
