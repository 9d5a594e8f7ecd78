package dev.millrace.scorer;

import dev.millrace.policy.weights.Weights;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The versions at hand: the newest, loaded in the background, and those used last.
 *
 * <p>What was the newest stays for the rollouts that are behind, so that in the ordinary course no version is read from
 * the log twice. Owned by the scoring thread.
 */
final class KnownVersions {

    /**
     * A version's weights or why there are none; exactly one of them.
     *
     * @param weights not to be written; null if they cannot be had
     * @param unavailable null if they can
     */
    record Answer(@Nullable Weights weights, @Nullable String unavailable) {}

    private final PolicyFeed feed;
    private final NewestWeights newest;
    private final Duration wait;
    private final Map<Long, Weights> kept;
    private long newestVersion = -1;
    private @Nullable Weights newestWeights;

    KnownVersions(PolicyFeed feed, NewestWeights newest, ScorerConfig config) {
        this.feed = feed;
        this.newest = newest;
        this.wait = Duration.ofMillis(config.versionWaitMs());
        this.kept = new LinkedHashMap<>(16, 0.75f, true) {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<Long, Weights> eldest) {
                return size() // the newest is one of them
                        >= config.cachedVersions(eldest.getValue().shape().parameterCount());
            }
        };
    }

    /** The newest version known, at least as new as what {@link #get} has given. */
    long newest() {
        NewestWeights.Loaded loaded = newest.current();
        if (loaded.version() > newestVersion) {
            take(loaded.version(), loaded.weights());
        }
        return newestVersion;
    }

    /** A version's weights, from the log if need be; those of {@link #newest} are always there. */
    Answer get(long version) {
        if (version == newest()) {
            return new Answer(newestWeights, null);
        }
        Weights weights = kept.get(version);
        if (weights != null) {
            return new Answer(weights, null);
        }
        try {
            if (version > newestVersion) {
                feed.awaitAtLeast(version, wait); // a generator may have heard of it a moment before us
            }
            weights = feed.shared(version, this::cached);
        } catch (VersionUnavailableException | CorruptVersionException e) {
            return new Answer(null, e.getMessage());
        }
        if (version > newestVersion) {
            take(version, weights);
        } else {
            kept.put(version, weights);
        }
        return new Answer(weights, null);
    }

    private @Nullable Weights cached(long version) {
        return version == newestVersion ? newestWeights : kept.get(version);
    }

    private void take(long version, Weights weights) {
        if (newestWeights != null) {
            kept.put(newestVersion, newestWeights);
        }
        newestVersion = version;
        newestWeights = weights;
    }
}
