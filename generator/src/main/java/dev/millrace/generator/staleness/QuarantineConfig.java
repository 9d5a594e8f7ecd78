package dev.millrace.generator.staleness;

/**
 * When a generator goes into quarantine: its records are refused and its samples released to others, until somebody lifts it.
 *
 * @param refusedRecords refused records without a new version, or at {@code refused_share}, that quarantine a
 *     generator; 0 turns it off
 * @param windowRecords newest records that {@code refused_share} counts
 * @param refusedShare refused share that quarantines, above 0, at most 1; needs {@code refused_records}
 * @param maxDifference largest mean difference, in nats, between a generator's log-probs and the scorer's; a third of
 *     it if they predict no better than a constant; 0 turns it off
 * @param differenceTokens fewest tokens for that comparison, from rollouts of a single version
 */
public record QuarantineConfig(
        int refusedRecords, int windowRecords, double refusedShare, double maxDifference, int differenceTokens) {

    public QuarantineConfig {
        if (refusedRecords < 0) {
            throw new IllegalArgumentException(
                    "refused_records must be at least 0, where 0 disables quarantine: " + refusedRecords);
        }
        if (windowRecords < 1 || windowRecords > 1 << 20) {
            throw new IllegalArgumentException("window_records must be 1 to " + (1 << 20) + ": " + windowRecords);
        }
        if (!(refusedShare > 0 && refusedShare <= 1)) {
            throw new IllegalArgumentException("refused_share must be above 0 and at most 1: " + refusedShare);
        }
        if (!(maxDifference >= 0 && maxDifference < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "max_difference must be finite and at least 0, where 0 compares no log-probs: " + maxDifference);
        }
        if (differenceTokens < 1) {
            throw new IllegalArgumentException("difference_tokens must be at least 1: " + differenceTokens);
        }
    }

    /** 64 refused, or half of the last 256; a mean difference above 0.3 over 4096 tokens. */
    public static QuarantineConfig defaults() {
        return new QuarantineConfig(64, 256, 0.5, 0.3, 4096);
    }
}
