package dev.millrace.gateway;

import com.sun.net.httpserver.Filter;
import com.sun.net.httpserver.HttpExchange;
import java.time.Duration;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Threads of an HTTP server, one per request.
 *
 * <p>The JDK's server reads on the answering thread, so half a request holds one. When all are held, the oldest unread
 * request is closed; if all are read, a new connection is closed. A request counts as read after {@link #read()} or
 * {@link #filter()}.
 */
public final class RequestThreads implements Executor, AutoCloseable {
    private static final long CLOSING_MS = 1_000;
    private static final ThreadLocal<Request> CURRENT = new ThreadLocal<>();

    private final ExecutorService threads;
    private final Semaphore free;
    /** Unread requests, oldest first; also the lock. */
    private final Set<Request> unread = new LinkedHashSet<>();

    private final @Nullable Duration limit;
    private final ScheduledThreadPoolExecutor watch;

    /** Guarded by {@link #unread}. */
    private static final class Request {
        /** Null outside the request. */
        @Nullable
        Thread thread;

        boolean isClosed;

        /** Interrupts the thread, which closes its channel. */
        void close() {
            isClosed = true;
            if (thread != null) {
                thread.interrupt();
            }
        }
    }

    /** @param limit of a request from first byte to answer; null for none */
    public RequestThreads(String name, int most, @Nullable Duration limit) {
        this.threads = Executors.newCachedThreadPool(daemons(name));
        this.free = new Semaphore(most);
        this.limit = limit;
        this.watch = new ScheduledThreadPoolExecutor(1, daemons(name + "-limit"));
        watch.setRemoveOnCancelPolicy(true);
    }

    /** Makes daemon threads of one name. */
    public static ThreadFactory daemons(String name) {
        return task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        };
    }

    /** Called by the server's dispatching thread. */
    @Override
    public void execute(Runnable task) {
        if (!free.tryAcquire() && !makeRoom()) {
            throw new RejectedExecutionException("the limit of concurrent requests is reached");
        }
        Request request = new Request();
        synchronized (unread) {
            unread.add(request);
        }
        try {
            threads.execute(() -> {
                try {
                    answer(request, task);
                } finally {
                    free.release();
                }
            });
        } catch (RejectedExecutionException | OutOfMemoryError e) { // closed, or no thread is available
            end(request);
            free.release();
            throw e;
        }
    }

    /** Marks the current thread's request as read, which protects it from eviction. */
    public void read() {
        synchronized (unread) {
            if (!unread.remove(CURRENT.get())) {
                Thread.interrupted(); // it ended before it could be closed
            }
        }
    }

    /** Marks each request without a body as read before its handler. */
    public Filter filter() {
        return Filter.beforeHandler("tells that a request is read", exchange -> {
            if (!hasBody(exchange)) {
                read();
            }
        });
    }

    private static boolean hasBody(HttpExchange exchange) {
        List<String> length = exchange.getRequestHeaders().getOrDefault("Content-Length", List.of("0"));
        return exchange.getRequestHeaders().containsKey("Transfer-Encoding") || !length.equals(List.of("0"));
    }

    private boolean makeRoom() {
        try {
            boolean isFree = false;
            while (!isFree && closeOldest()) {
                isFree = free.tryAcquire(CLOSING_MS, TimeUnit.MILLISECONDS);
            }
            return isFree;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** False if every request is read. */
    private boolean closeOldest() {
        synchronized (unread) {
            Iterator<Request> oldest = unread.iterator();
            if (!oldest.hasNext()) {
                return false;
            }
            oldest.next().close();
            oldest.remove();
            return true;
        }
    }

    private void answer(Request request, Runnable task) {
        ScheduledFuture<?> end =
                limit == null ? null : watch.schedule(() -> close(request), limit.toNanos(), TimeUnit.NANOSECONDS);
        synchronized (unread) {
            request.thread = Thread.currentThread();
            if (request.isClosed) {
                request.close();
            }
        }
        CURRENT.set(request);
        try {
            task.run();
        } finally {
            CURRENT.remove();
            end(request);
            if (end != null) {
                end.cancel(false);
            }
            Thread.interrupted();
        }
    }

    private void close(Request request) {
        synchronized (unread) {
            request.close();
        }
    }

    private void end(Request request) {
        synchronized (unread) {
            request.thread = null;
            unread.remove(request);
        }
    }

    @Override
    public void close() {
        threads.shutdownNow();
        watch.shutdownNow();
    }
}
