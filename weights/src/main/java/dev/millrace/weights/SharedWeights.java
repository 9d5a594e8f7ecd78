package dev.millrace.weights;

import dev.millrace.policy.weights.Weights;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Versions that roles of one process hold at the same time: each is in memory once, as long as somebody holds it. Nobody may write them.
 *
 * <p>Thread-safe; who asks while another loads the same version waits for that.
 */
final class SharedWeights {
    private static final Map<String, Place> PLACES = new ConcurrentHashMap<>();

    private SharedWeights() {}

    /** Where one version is, if it is; its monitor is held while it is loaded. */
    private static final class Place {
        private WeakReference<@Nullable Weights> held = new WeakReference<>(null);
    }

    /**
     * The weights of a version.
     *
     * @param identity of cluster, run, version and content
     * @param loader asked if nobody holds them; what it throws is thrown, and the next who asks tries again
     */
    static Weights get(String identity, Supplier<Weights> loader) {
        PLACES.entrySet()
                .removeIf(each ->
                        each.getValue().held.refersTo(null) && !each.getKey().equals(identity));
        Place place = PLACES.computeIfAbsent(identity, absent -> new Place());
        synchronized (place) {
            Weights there = place.held.get();
            if (there == null) {
                there = loader.get();
                place.held = new WeakReference<>(there);
            }
            return there;
        }
    }
}
