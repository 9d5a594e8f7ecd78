package dev.millrace.workloads.closed;

import dev.millrace.api.step.MadeStep;
import dev.millrace.api.step.StepObserver;
import dev.millrace.workloads.topology.Distribution;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Lets every optimiser step take longer by a time that is drawn for it, until released.
 */
public final class SlowSteps implements StepObserver, AutoCloseable {
    private final Distribution addedMs;
    private final long seed;
    private final CountDownLatch released = new CountDownLatch(1);

    public SlowSteps(Distribution addedMs, long seed) {
        this.addedMs = addedMs;
        this.seed = seed;
    }

    @Override
    public void stepMade(MadeStep step) {
        try {
            released.await(addedMs.draw(new SplittableRandom(seed + step.batchId())), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** From now on no step takes longer than it does by itself. */
    public void release() {
        released.countDown();
    }

    @Override
    public void close() {
        release();
    }
}
