package dev.millrace.workloads.topology;

import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * The most live heap there was while this was open: what full collections leave in use, one every {@value #PAUSE_MS} ms. What
 * runs meanwhile is slowed down and no matter of time.
 */
final class LiveHeap implements AutoCloseable {
    private static final long PAUSE_MS = 50;

    private final AtomicLong most = new AtomicLong();
    private final Thread collector = new Thread(this::collect, "live heap");
    private volatile boolean closed;

    /** Begins. */
    LiveHeap() {
        collector.start();
    }

    private void collect() {
        while (!closed) {
            System.gc();
            most.accumulateAndGet(
                    ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(), Math::max);
            LockSupport.parkNanos(PAUSE_MS * 1_000_000);
        }
    }

    /** So far, in bytes. */
    long mostBytes() {
        return most.get();
    }

    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(collector);
        try {
            collector.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
