package dev.millrace.counterfactual;

import dev.millrace.archive.RecordedVersions;

/**
 * Versions between which steps are looked at.
 *
 * @param from whose weights the first step begins with
 * @param to that the last step makes; above {@code from}
 */
public record VersionRange(long from, long to) {

    /**
     * What is there of what was asked for.
     *
     * @param from null for the oldest version
     * @param to null for the newest
     * @throws IllegalArgumentException if no step lies between them
     */
    public static VersionRange of(Long from, Long to, RecordedVersions versions) {
        if (versions.oldest().isEmpty()) {
            throw new IllegalArgumentException("the run has no version yet, so there is no step to learn again");
        }
        long oldest = versions.oldest().getAsLong();
        long newest = versions.newest().getAsLong();
        VersionRange range = new VersionRange(from == null ? oldest : from, to == null ? newest : to);
        if (range.from < oldest || range.to > newest || range.from >= range.to) {
            throw new IllegalArgumentException("no step leads from version " + range.from + " to version " + range.to
                + "; the recorded versions are " + oldest + " to " + newest + ", and --from-version must be below --to-version");
        }
        return range;
    }

    /** Steps between them. */
    public long steps() {
        return to - from;
    }
}
