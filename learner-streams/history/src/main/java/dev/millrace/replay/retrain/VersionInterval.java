package dev.millrace.replay.retrain;

import dev.millrace.replay.archive.HeldRange;
import dev.millrace.replay.archive.RecordedVersions;
import java.util.LongSummaryStatistics;
import java.util.OptionalLong;
import java.util.stream.LongStream;

/**
 * Versions between which steps are looked at.
 *
 * @param from whose weights the first step begins with
 * @param to that the last step makes; above {@code from}
 */
public record VersionInterval(long from, long to) {

    /**
     * What is there of what was asked for.
     *
     * @param from null for the oldest version
     * @param to null for the newest
     * @throws IllegalArgumentException if no step lies between them
     */
    public static VersionInterval of(Long from, Long to, RecordedVersions versions) {
        if (versions.oldest().isEmpty()) {
            throw new IllegalArgumentException("the run has no version yet, so there is no step to learn again");
        }
        return between(
                from, to, versions.oldest().getAsLong(), versions.newest().getAsLong(), "the recorded versions are ");
    }

    /**
     * What is there of what was asked for, in an archive of some batches: the steps on these.
     *
     * @param from null for the version from which the first of the steps began
     * @param to null for the version that the last one made
     * @throws IllegalArgumentException if none of these steps lies between them
     */
    public static VersionInterval within(HeldRange held, Long from, Long to, RecordedVersions versions) {
        LongSummaryStatistics beginnings = LongStream.rangeClosed(held.firstBatch(), held.lastBatch())
                .mapToObj(versions::beginningOf)
                .flatMapToLong(OptionalLong::stream)
                .summaryStatistics();
        if (beginnings.getCount() == 0) {
            throw new IllegalArgumentException(
                    "no step on one of the archive's batches, " + held.firstBatch() + " to " + held.lastBatch()
                            + ", is recorded, so there is none to learn again; export a range in which the run learnt");
        }
        return between(
                from, to, beginnings.getMin(), beginnings.getMax() + 1, "the archive holds the steps from version ");
    }

    private static VersionInterval between(Long from, Long to, long oldest, long newest, String there) {
        VersionInterval range = new VersionInterval(from == null ? oldest : from, to == null ? newest : to);
        if (range.from < oldest || range.to > newest || range.from >= range.to) {
            throw new IllegalArgumentException("no step leads from version " + range.from + " to version " + range.to
                    + "; " + there + oldest + " to " + newest + ", and --from-version must be below --to-version");
        }
        return range;
    }

    /** Steps between them. */
    public long steps() {
        return to - from;
    }
}
