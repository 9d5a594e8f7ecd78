package dev.millrace.weights;

import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.Weights;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What roles of one process hold at the same time: each is in memory once, as long as somebody holds it. Nobody may write it.
 *
 * <p>Thread-safe; who asks while another loads the same waits for that.
 */
final class Shared<T> {
    /** Versions, by cluster, run, number and content. */
    static final Shared<Weights> VERSIONS = new Shared<>();
    /** What adapters are put upon, by content. */
    static final Shared<FrozenWeights> BASES = new Shared<>();

    private final Map<String, Place<T>> places = new ConcurrentHashMap<>();

    private Shared() {}

    /** Where one is, if it is; its monitor is held while it is loaded. */
    private static final class Place<T> {
        private WeakReference<@Nullable T> held = new WeakReference<>(null);
    }

    /**
     * The one of a name.
     *
     * @param identity two of the same identity are the same bits
     * @param loader asked if nobody holds it; what it throws is thrown, and the next who asks tries again
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
