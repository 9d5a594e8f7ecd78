package dev.millrace.cli.config;

import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;

/** Finds the known key that a mistyped one was probably meant to be: the smallest edit distance, if it is small. */
public final class NearestKey {
    private NearestKey() {
    }

    /** The nearest of {@code known}, or empty if none is within half the length of {@code key}. */
    public static Optional<String> of(String key, Collection<String> known) {
        return known.stream()
            .min(Comparator.<String>comparingInt(k -> distance(key, k)).thenComparing(Comparator.naturalOrder()))
            .filter(k -> distance(key, k) <= Math.max(2, key.length() / 2));
    }

    /** Levenshtein distance: insertions, deletions and replacements that turn one string into the other. */
    static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, Math.min(row[j], row[j - 1]) + 1);
            }
        }
        return row[b.length()];
    }
}
