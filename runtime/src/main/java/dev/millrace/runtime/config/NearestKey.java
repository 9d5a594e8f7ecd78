package dev.millrace.runtime.config;

import dev.millrace.generator.environment.NearestName;
import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;

/** Finds the known key that a mistyped one was probably meant to be: the smallest edit distance, if it is small. */
public final class NearestKey {
    private NearestKey() {}

    /** The nearest of {@code known}, or empty if none is within half the length of {@code key}. */
    public static Optional<String> of(String key, Collection<String> known) {
        return known.stream()
                .min(Comparator.<String>comparingInt(k -> NearestName.editDistance(key, k))
                        .thenComparing(Comparator.naturalOrder()))
                .filter(k -> NearestName.editDistance(key, k) <= Math.max(2, key.length() / 2));
    }
}
