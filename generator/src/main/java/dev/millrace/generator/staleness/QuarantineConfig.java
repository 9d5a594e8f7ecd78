package dev.millrace.generator.staleness;

/**
 * When a generator goes into quarantine: its records are refused and its samples released to others, until somebody lifts it.
 *
 * @param refusedRecords so many of its records are refused while no new version appears, or are {@code refused_share} of its
 *     newest; 0 puts no generator into quarantine for what is refused
 * @param windowRecords how many of its newest records count for {@code refused_share}
 * @param refusedShare share of them that may not be refused, above 0 and at most 1; it takes {@code refused_records} of them at least
 * @param maxDifference nats by which the log-probs that it sends may differ, in the mean, from those of the version that it names,
 *     as the scorer has them; a third of it where they say no more of the tokens than a constant would; 0 compares none. Engines of
 *     another precision differ by 0.1 at most
 * @param differenceTokens over so many tokens at least, of rollouts that one version sampled from end to end
 */
public record QuarantineConfig(
        int refusedRecords, int windowRecords, double refusedShare, double maxDifference, int differenceTokens) {

    public QuarantineConfig {
        if (refusedRecords < 0) {
            throw new IllegalArgumentException(
                    "refused_records must be at least 0, and 0 puts no generator into quarantine: " + refusedRecords);
        }
        if (windowRecords < 1 || windowRecords > 1 << 20) {
            throw new IllegalArgumentException("window_records must be 1 to " + (1 << 20) + ": " + windowRecords);
        }
        if (!(refusedShare > 0 && refusedShare <= 1)) {
            throw new IllegalArgumentException("refused_share must be above 0 and at most 1: " + refusedShare);
        }
        if (!(maxDifference >= 0 && maxDifference < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "max_difference must be finite and at least 0, and 0 compares no log-probs: " + maxDifference);
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
