package dev.millrace.topology.join;

import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.ingress.JoinSide;
import java.util.EnumSet;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Whom a rollout is joined with, and how they wait for each other. A score is always waited for.
 *
 * @param reward whether a rollout also waits for a record on {@code rewards}, whose reward takes the place of its own; a
 *     run has this topic, and those of the next two, only where they are waited for
 * @param reference whether it also waits for a record on {@code reference-scores}, which KL against a reference needs
 * @param teacher whether it also waits for a record on {@code teacher-scores}
 * @param unscoredAfterMs a rollout that still lacks a partner leaves after so much activity, as {@code unscored},
 *     {@code unrewarded}, {@code unreferenced} or {@code untaught}
 * @param orphanAfterMs a partner without a rollout leaves after so much activity, as {@code orphan-score},
 *     {@code orphan-reward}, {@code orphan-reference} or {@code orphan-teacher}
 * @param maxGapMs a gap between records counts as at most this towards the two above
 * @param payloadCacheBytes heap for the payloads of what waits, per task; beyond it they are read again from the log
 * @param dedupeRetentionMs a sample is recognised as a repetition for at least so much activity after its group was
 *     last heard of; at least as long as the two deadlines
 * @param dedupeGroups groups remembered at most, per task; beyond it the oldest is forgotten
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
                    + unscoredAfterMs + " and orphan_after_ms " + orphanAfterMs + ", or what waits could come twice: "
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
