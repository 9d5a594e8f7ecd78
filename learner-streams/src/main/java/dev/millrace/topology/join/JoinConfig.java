package dev.millrace.topology.join;

/**
 * How rollouts and scores wait for each other.
 *
 * @param unscoredAfterMs a rollout without a score leaves as {@code unscored} after so much activity
 * @param orphanAfterMs a score without a rollout leaves as {@code orphan-score} after so much activity
 * @param maxGapMs a gap between records counts as at most this towards the two above
 * @param payloadCacheBytes heap for the payloads of what waits, per task; beyond it they are read again from the log
 * @param dedupeRetentionMs a sample is recognised as a repetition for at least so much activity after its group was
 *     last heard of; at least as long as the two deadlines
 * @param dedupeGroups groups remembered at most, per task; beyond it the oldest is forgotten
 */
public record JoinConfig(long unscoredAfterMs, long orphanAfterMs, long maxGapMs, long payloadCacheBytes,
    long dedupeRetentionMs, int dedupeGroups) {

    public JoinConfig {
        requirePositive("unscored_after_ms", unscoredAfterMs);
        requirePositive("orphan_after_ms", orphanAfterMs);
        requirePositive("max_gap_ms", maxGapMs);
        if (payloadCacheBytes < 0) {
            throw new IllegalArgumentException("payload_cache_bytes must be at least 0: " + payloadCacheBytes);
        }
        if (dedupeRetentionMs < Math.max(unscoredAfterMs, orphanAfterMs)) {
            throw new IllegalArgumentException("dedupe_retention_ms must be at least unscored_after_ms " + unscoredAfterMs
                + " and orphan_after_ms " + orphanAfterMs + ", or what waits could come twice: " + dedupeRetentionMs);
        }
        requirePositive("dedupe_groups", dedupeGroups);
    }

    private static void requirePositive(String key, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }

    /** Ten minutes for a score, one for a rollout, 64 MiB of payloads, an hour of memory for repetitions. */
    public static JoinConfig defaults() {
        return new JoinConfig(600_000, 60_000, 10_000, 64L << 20, 3_600_000, 100_000);
    }
}
