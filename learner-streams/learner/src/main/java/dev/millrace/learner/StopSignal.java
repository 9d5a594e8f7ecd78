package dev.millrace.learner;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** That the learner is to end: given once, from any thread, to the one that runs it. */
final class StopSignal {
    private final CountDownLatch stopping = new CountDownLatch(1);
    private volatile boolean stopped;
    /** Ends whatever the running thread waits for. */
    private volatile Runnable wakeup = () -> {};

    boolean isStopped() {
        return stopped;
    }

    /** Gives it, and ends what is waited for. */
    void stop() {
        stopped = true;
        stopping.countDown();
        wakeup.run();
    }

    /** What ends the waits that come now; before the first of them. */
    void wakes(Runnable newWakeup) {
        wakeup = newWakeup;
    }

    /** Waits until it is given, or the limit is over. An interrupt gives it too. */
    void await(Duration limit) {
        try {
            stopping.await(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            stopped = true;
        }
    }
}
