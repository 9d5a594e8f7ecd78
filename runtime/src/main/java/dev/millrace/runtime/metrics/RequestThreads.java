package dev.millrace.runtime.metrics;

import java.time.Duration;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads that read requests and answer them, each within a limit.
 *
 * <p>The JDK's server reads a request on the thread that answers it, and waits for its end for as long as it takes. So whoever sends
 * half a request holds a thread; after the limit it is interrupted, which closes the connection. When all threads are held, further
 * connections are closed at once rather than put behind them.
 */
final class RequestThreads extends ThreadPoolExecutor {
    private final long limitNanos;
    private final ScheduledThreadPoolExecutor watch;

    RequestThreads(int most, Duration limit) {
        super(0, most, 30, TimeUnit.SECONDS, new SynchronousQueue<>(), task -> daemon(task, "http"));
        this.limitNanos = limit.toNanos();
        this.watch = new ScheduledThreadPoolExecutor(1, task -> daemon(task, "http-limit"));
        watch.setRemoveOnCancelPolicy(true);
    }

    private static Thread daemon(Runnable task, String name) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        return thread;
    }

    @Override
    public void execute(Runnable request) {
        super.execute(() -> withinLimit(request));
    }

    private void withinLimit(Runnable request) {
        Thread thread = Thread.currentThread();
        Object turn = new Object();
        boolean[] over = {false};
        ScheduledFuture<?> end = watch.schedule(
                () -> {
                    synchronized (turn) { // or the thread could be at another request by then
                        if (!over[0]) {
                            thread.interrupt();
                        }
                    }
                },
                limitNanos,
                TimeUnit.NANOSECONDS);
        try {
            request.run();
        } finally {
            synchronized (turn) {
                over[0] = true;
            }
            end.cancel(false);
            Thread.interrupted();
        }
    }

    @Override
    protected void terminated() {
        watch.shutdownNow();
    }
}
