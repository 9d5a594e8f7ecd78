package dev.millrace.learner.repair;

import java.util.List;

/**
 * Two things on the log that cannot both be true.
 *
 * @param name lower case with dashes, as {@code batch-lost}
 * @param sentence what contradicts what, with the values
 * @param ways the cheapest first; empty if nothing on this log helps
 */
public record Inconsistency(String name, String sentence, List<Way> ways) {
    public Inconsistency {
        ways = List.copyOf(ways);
    }
}
