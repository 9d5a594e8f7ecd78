package dev.millrace.view.follow;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

/** Tells those who look at a run what is new of it. Thread-safe; a listener must not wait. */
public final class Events {
    private final List<Consumer<Event>> listeners = new CopyOnWriteArrayList<>();

    /**
     * Something new.
     *
     * @param name of its kind: {@code steps}, {@code index}, {@code state}, or {@code end}, the last
     * @param json what is to be said of it, on one line
     */
    public record Event(String name, String json) {}

    /** Tells it from now on. */
    public void add(Consumer<Event> listener) {
        listeners.add(listener);
    }

    /** Tells it no more. */
    public void remove(Consumer<Event> listener) {
        listeners.remove(listener);
    }

    /** Whether anybody looks. */
    public boolean isWatched() {
        return !listeners.isEmpty();
    }

    void tell(String name, String json) {
        Event event = new Event(name, json);
        listeners.forEach(listener -> listener.accept(event));
    }
}
