package dev.millrace.weights;

import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.Weights;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Objects that the roles of a process share: each is in memory once while a role holds it. Read-only.
 *
 * <p>Thread-safe; a thread that requests an object during its load waits for that load.
 */
final class Shared<T> {
    /** Versions, by cluster, run, number and content. */
    static final Shared<Weights> VERSIONS = new Shared<>();
    /** Base weights of adapters, by content. */
    static final Shared<FrozenWeights> BASES = new Shared<>();

    private final Map<String, Place<T>> places = new ConcurrentHashMap<>();

    private Shared() {}

    /** Holder of one object; its monitor is held during the load. */
    private static final class Place<T> {
        private WeakReference<@Nullable T> held = new WeakReference<>(null);
    }

    /**
     * Returns the shared object with an identity, loading it if no role holds it.
     *
     * @param identity objects with the same identity have the same bits
     * @param loader called if no role holds the object; its exception is passed on, and the next call tries again
     */
    T get(String identity, Supplier<T> loader) {
        places.entrySet()
                .removeIf(each ->
                        each.getValue().held.refersTo(null) && !each.getKey().equals(identity));
        Place<T> place = places.computeIfAbsent(identity, absent -> new Place<>());
        synchronized (place) {
            T there = place.held.get();
            if (there == null) {
                there = loader.get();
                place.held = new WeakReference<>(there);
            }
            return there;
        }
    }
}
