package dev.millrace.audit.ledger;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Outcomes of a run's rollouts.
 *
 * @param byOrigin by epoch and policy version
 * @param redriven redriven rollouts; their first records are in no tally
 * @param oldestWaiting longest wait of each stage
 * @param contradictions records accounted for twice or missing, as sentences; at most {@value
 *     Ledger#NAMED_CONTRADICTIONS}
 * @param contradictionCount in all
 * @param gaps deleted parts of the log, as sentences; the balance is then incomplete
 */
public record Balance(
        SortedMap<RolloutOrigin, Tally> byOrigin,
        long redriven,
        Unmatched unmatched,
        List<OldestPending> oldestWaiting,
        List<String> contradictions,
        long contradictionCount,
        List<String> gaps) {

    public Balance {
        byOrigin = Collections.unmodifiableSortedMap(new TreeMap<>(byOrigin));
        oldestWaiting = List.copyOf(oldestWaiting);
        contradictions = List.copyOf(contradictions);
        gaps = List.copyOf(gaps);
    }

    public Tally all() {
        return byOrigin.values().stream().reduce(Tally.NONE, Tally::plus);
    }

    /** Records outside the run belong to no epoch. */
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
     * Records that no tally counts, by topic.
     *
     * @param copies duplicate records by topic without prefix; of trajectories, those decided as new
     * @param strays by topic without prefix: decisions and scores that name no rollout record
     * @param otherDeadLetters refused and not redriven records that are no rollouts
     */
    public record Unmatched(Map<String, Long> copies, Map<String, Long> strays, Map<String, Long> otherDeadLetters) {

        public Unmatched {
            copies = new TreeMap<>(copies);
            strays = new TreeMap<>(strays);
            otherDeadLetters = new TreeMap<>(otherDeadLetters);
        }
    }

    /**
     * Longest wait of a stage.
     *
     * @param sinceMs time of its record, Unix milliseconds
     */
    public record OldestPending(String stage, String rolloutId, long sinceMs) {}
}
