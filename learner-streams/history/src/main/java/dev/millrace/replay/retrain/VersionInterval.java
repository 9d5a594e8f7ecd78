package dev.millrace.replay.retrain;

import dev.millrace.replay.archive.HeldRange;
import dev.millrace.replay.archive.RecordedVersions;
import java.util.LongSummaryStatistics;
import java.util.OptionalLong;
import java.util.stream.LongStream;

/**
 * @param from start version of the first step
 * @param to version of the last step; above {@code from}
 */
public record VersionInterval(long from, long to) {

    /**
     * The requested part of what exists.
     *
     * @param from null for the oldest version
     * @param to null for the newest
     * @throws IllegalArgumentException without a step in between
     */
    public static VersionInterval of(Long from, Long to, RecordedVersions versions) {
        if (versions.oldest().isEmpty()) {
            throw new IllegalArgumentException("the run has no version yet, so there is no step to retrain");
        }
        return between(
                from, to, versions.oldest().getAsLong(), versions.newest().getAsLong(), "the recorded versions are ");
    }

    /**
     * The requested part of an archive of some batches.
     *
     * @param from null for the first step's start
     * @param to null for the last step's version
     * @throws IllegalArgumentException without a step in between
     */
    public static VersionInterval within(HeldRange held, Long from, Long to, RecordedVersions versions) {
        LongSummaryStatistics beginnings = LongStream.rangeClosed(held.firstBatch(), held.lastBatch())
                .mapToObj(versions::beginningOf)
                .flatMapToLong(OptionalLong::stream)
                .summaryStatistics();
        if (beginnings.getCount() == 0) {
            throw new IllegalArgumentException(
                    "no step on one of the archive's batches, " + held.firstBatch() + " to " + held.lastBatch()
                            + ", is recorded, so there is none to retrain; export a range with training steps");
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

    public long steps() {
        return to - from;
    }
}
