package dev.millrace.audit.ledger;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * What became of the rollouts of a run.
 *
 * @param byOrigin by epoch and policy version
 * @param redriven dead letters of rollouts that were redriven; their first records are in no tally
 * @param copies by topic, without its prefix: records that are on it once more and count once, as steps, batches, outcomes and dead letters; of
 *     trajectories those about which the topology decided as if they were new
 * @param strays by topic, without its prefix: decisions and scores that name no place of the rollouts topic, and count for nothing
 * @param otherDeadLetters refused records that are no rollouts and were not redriven, by topic
 * @param oldestWaiting what has waited longest, in each stage in which something waits
 * @param contradictions sentences, each about a record that is accounted for twice or missing; at most
 *     {@value Ledger#NAMED_CONTRADICTIONS}
 * @param contradictionCount how many there are in all
 * @param gaps sentences, each about something that the log no longer keeps, so that the balance cannot be complete
 */
public record Balance(
        SortedMap<RolloutOrigin, Tally> byOrigin,
        long redriven,
        Map<String, Long> copies,
        Map<String, Long> strays,
        Map<String, Long> otherDeadLetters,
        List<OldestPending> oldestWaiting,
        List<String> contradictions,
        long contradictionCount,
        List<String> gaps) {

    public Balance {
        byOrigin = Collections.unmodifiableSortedMap(new TreeMap<>(byOrigin));
        copies = new TreeMap<>(copies);
        strays = new TreeMap<>(strays);
        otherDeadLetters = new TreeMap<>(otherDeadLetters);
        oldestWaiting = List.copyOf(oldestWaiting);
        contradictions = List.copyOf(contradictions);
        gaps = List.copyOf(gaps);
    }

    /** Every rollout. */
    public Tally all() {
        return byOrigin.values().stream().reduce(Tally.NONE, Tally::plus);
    }

    /** Returns the tally of all rollouts of an epoch, and of all records outside the run, which belong to no epoch. */
    public Tally ofEpoch(int epoch) {
        return byOrigin.entrySet().stream()
                .filter(entry ->
                        entry.getKey().epoch() == epoch || entry.getKey().equals(RolloutOrigin.NOT_OURS))
                .map(Map.Entry::getValue)
                .reduce(Tally.NONE, Tally::plus);
    }

    /** True if every rollout is accounted for exactly once, as far as the log goes back. */
    public boolean addsUp() {
        return contradictionCount == 0 && all().addsUp();
    }

    /**
     * What has waited longest in one stage.
     *
     * @param stage for a sentence
     * @param rolloutId of the rollout
     * @param sinceMs when its record was written, Unix milliseconds
     */
    public record OldestPending(String stage, String rolloutId, long sinceMs) {}
}
