package dev.millrace.topology.join;

import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.ingress.JoinSide;
import java.util.EnumSet;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Whom a rollout is joined with, and how they wait for each other. A score is always waited for.
 *
 * @param reward also wait for a record on {@code rewards}, whose reward replaces the rollout's; creates the topic
 * @param reference also wait for {@code reference-scores}, which KL needs; creates the topic
 * @param teacher also wait for {@code teacher-scores}; creates the topic
 * @param unscoredAfterMs activity after which a rollout without its partners is dropped
 * @param orphanAfterMs activity after which a partner without a rollout is dropped
 * @param maxGapMs most activity that one gap between records counts as
 * @param payloadCacheBytes heap per task for waiting payloads; the log serves the rest
 * @param dedupeRetentionMs activity for which duplicates are recognised, at least both deadlines
 * @param dedupeGroups most groups remembered per task, newest first
 */
public record JoinConfig(
        boolean reward,
        boolean reference,
        boolean teacher,
        long unscoredAfterMs,
        long orphanAfterMs,
        long maxGapMs,
        long payloadCacheBytes,
        long dedupeRetentionMs,
        int dedupeGroups) {

    public JoinConfig {
        requirePositive("unscored_after_ms", unscoredAfterMs);
        requirePositive("orphan_after_ms", orphanAfterMs);
        requirePositive("max_gap_ms", maxGapMs);
        if (payloadCacheBytes < 0) {
            throw new IllegalArgumentException("payload_cache_bytes must be at least 0: " + payloadCacheBytes);
        }
        if (dedupeRetentionMs < Math.max(unscoredAfterMs, orphanAfterMs)) {
            throw new IllegalArgumentException("dedupe_retention_ms must be at least unscored_after_ms "
                    + unscoredAfterMs + " and orphan_after_ms " + orphanAfterMs + ", or a pending record could be"
                    + " accepted twice: "
                    + dedupeRetentionMs);
        }
        requirePositive("dedupe_groups", dedupeGroups);
    }

    private static void requirePositive(String key, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }

    /** Those whom a rollout waits for. */
    public Set<JoinSide> partners() {
        Set<JoinSide> partners = EnumSet.of(JoinSide.SCORE);
        if (reward) {
            partners.add(JoinSide.REWARD);
        }
        if (reference) {
            partners.add(JoinSide.REFERENCE);
        }
        if (teacher) {
            partners.add(JoinSide.TEACHER);
        }
        return partners;
    }

    /** The topics of those partners that a run has only if it waits for them. */
    public Set<String> partnerTopics(RunTopics topics) {
        return partners().stream()
                .map(partner -> partner.topic(topics))
                .filter(topics.ofPartners()::contains)
                .collect(Collectors.toUnmodifiableSet());
    }

    /** Scores only; ten minutes for a score, one for a rollout, 64 MiB of payloads, an hour of memory for repetitions. */
    public static JoinConfig defaults() {
        return new JoinConfig(false, false, false, 600_000, 60_000, 10_000, 64L << 20, 3_600_000, 100_000);
    }
}
