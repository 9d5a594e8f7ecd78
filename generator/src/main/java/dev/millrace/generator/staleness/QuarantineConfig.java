package dev.millrace.generator.staleness;

/**
 * When a generator goes into quarantine: its records are refused and its samples released to others, until somebody lifts it.
 *
 * @param refusedRecords so many of its records are refused while no new version appears, or are {@code refused_share} of its
 *     newest; 0 puts no generator into quarantine for what is refused
 * @param windowRecords how many of its newest records count for {@code refused_share}
 * @param refusedShare share of them that may not be refused, above 0 and at most 1; it takes {@code refused_records} of them at least
 */
public record QuarantineConfig(int refusedRecords, int windowRecords, double refusedShare) {

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
    }

    /** 64, or half of the last 256. */
    public static QuarantineConfig defaults() {
        return new QuarantineConfig(64, 256, 0.5);
    }
}
