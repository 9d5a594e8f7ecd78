package dev.millrace.topology.batch;

/**
 * When a group is ready for a batch, and when it is not worth one.
 *
 * @param deadlineMs activity after which a short group is closed
 * @param minSize fewest members of a trained short group; smaller ones leave as {@code group-short}
 * @param maxGapMs most activity that one gap between records counts as
 * @param closedRetentionMs activity for which late members of a closed group are recognised, at least
 *     {@code deadline_ms}
 * @param zeroVariance treatment of groups with equal rewards
 */
public record GroupsConfig(
        long deadlineMs, int minSize, long maxGapMs, long closedRetentionMs, ZeroVariance zeroVariance) {

    /** What becomes of a group whose rewards are all equal, so that every advantage is 0. */
    public enum ZeroVariance {
        /** It is batched: it costs compute and keeps batches comparable. */
        KEEP,
        /** It leaves as {@code zero-variance}, and admission releases the next prompt in its place. */
        DROP,
        /**
         * It leaves as with {@code drop}, but one of its samples as {@code resample}, which asks admission to release the
         * same prompt once more; how often, {@code admission.max_resamples} says.
         */
        RESAMPLE
    }

    public GroupsConfig {
        if (deadlineMs < 1) {
            throw new IllegalArgumentException("deadline_ms must be at least 1: " + deadlineMs);
        }
        if (minSize < 1) {
            throw new IllegalArgumentException("min_size must be at least 1: " + minSize);
        }
        if (maxGapMs < 1) {
            throw new IllegalArgumentException("max_gap_ms must be at least 1: " + maxGapMs);
        }
        if (closedRetentionMs < deadlineMs) {
            throw new IllegalArgumentException(
                    "closed_retention_ms must be at least deadline_ms " + deadlineMs + ": " + closedRetentionMs);
        }
    }

    /** Two minutes; half of a group of eight; an hour's memory of what was closed; equal rewards are kept. */
    public static GroupsConfig defaults() {
        return new GroupsConfig(120_000, 4, 10_000, 3_600_000, ZeroVariance.KEEP);
    }
}
