package dev.millrace.view.http;

import com.sun.net.httpserver.HttpExchange;
import dev.millrace.view.follow.Events;
import dev.millrace.view.follow.Events.Event;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/** Sends what is new of a run for as long as somebody listens. Of several events of a kind that wait, the newest alone is sent. */
final class EventStream implements Consumer<Event> {
    private static final long BREATH_SECONDS = 5;

    private final Lock lock = new ReentrantLock();
    private final Condition came = lock.newCondition();
    private final Map<String, Event> waiting = new LinkedHashMap<>();

    @Override
    public void accept(Event event) {
        lock.lock();
        try {
            waiting.put(event.name(), event);
            came.signal();
        } finally {
            lock.unlock();
        }
    }

    /** Answers until the listener goes away, or the server is closed, which interrupts the thread. */
    static void answer(HttpExchange exchange, Events events) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", "text/event-stream; charset=utf-8");
        exchange.getResponseHeaders().set("Cache-Control", "no-store");
        exchange.sendResponseHeaders(200, 0);
        EventStream stream = new EventStream();
        events.add(stream);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write("retry: 1000\n\n".getBytes(StandardCharsets.UTF_8));
            out.flush();
            while (!Thread.currentThread().isInterrupted()) {
                out.write(stream.next().getBytes(StandardCharsets.UTF_8));
                out.flush();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            events.remove(stream);
        }
    }

    private String next() throws InterruptedException {
        lock.lock();
        try {
            long left = TimeUnit.SECONDS.toNanos(BREATH_SECONDS);
            while (waiting.isEmpty() && left > 0) {
                left = came.awaitNanos(left);
            }
            if (waiting.isEmpty()) {
                return ": \n\n"; // so that one who went away is noticed
            }
            StringBuilder text = new StringBuilder();
            waiting.values()
                    .forEach(event -> text.append("event: ")
                            .append(event.name())
                            .append("\ndata: ")
                            .append(event.json())
                            .append("\n\n"));
            waiting.clear();
            return text.toString();
        } finally {
            lock.unlock();
        }
    }
}
