package dev.millrace.weights;

import dev.millrace.policy.weights.Weights;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * LRU cache of loaded versions with a fixed capacity.
 *
 * <p>Thread-safe. Concurrent requests for the same version share one load. All callers share the weights and must not
 * write them. An evicted version stays usable for its holders. A failed load is not cached, so that the next call tries
 * again.
 */
public final class WeightCache {
    private final LongFunction<Weights> loader;
    private final Map<Long, CompletableFuture<Weights>> loaded;

    /** @param capacity versions kept, at least 1; a scorer needs those that its rollouts span */
    public WeightCache(PolicyFeed feed, int capacity) {
        this(feed::load, capacity);
    }

    /** @param loader loads a version; may ask {@link #cached} for those that it can be made from */
    public WeightCache(LongFunction<Weights> loader, int capacity) {
        if (capacity < 1) {
            throw new IllegalArgumentException("weight_cache_versions must be at least 1: " + capacity);
        }
        this.loader = loader;
        this.loaded = new LinkedHashMap<>(16, 0.75f, true) {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<Long, CompletableFuture<Weights>> eldest) {
                return size() > capacity;
            }
        };
    }

    /**
     * Returns the weights of a version, loading them if needed; read-only.
     *
     * @throws VersionUnavailableException if the version is unavailable
     * @throws CorruptVersionException if it contradicts its manifest
     */
    public Weights get(long version) {
        CompletableFuture<Weights> mine = new CompletableFuture<>();
        CompletableFuture<Weights> theirs;
        synchronized (loaded) {
            theirs = loaded.get(version);
            if (theirs == null) {
                loaded.put(version, mine);
            }
        }
        if (theirs != null) {
            return await(theirs);
        }
        try {
            mine.complete(loader.apply(version));
        } catch (RuntimeException | Error e) {
            synchronized (loaded) {
                loaded.remove(version, mine);
            }
            mine.completeExceptionally(e);
            throw e;
        }
        return mine.join();
    }

    /** Returns a version's cached weights without loading or waiting; null if absent. */
    public @Nullable Weights cached(long version) {
        CompletableFuture<Weights> there;
        synchronized (loaded) {
            there = loaded.get(version);
        }
        return there == null || there.isCompletedExceptionally() ? null : there.getNow(null);
    }

    private static Weights await(CompletableFuture<Weights> load) {
        try {
            return load.join(); // bounded by the loading thread's own limit
        } catch (CompletionException e) {
            if (e.getCause() instanceof RuntimeException cause) {
                throw cause;
            }
            throw e;
        }
    }
}
