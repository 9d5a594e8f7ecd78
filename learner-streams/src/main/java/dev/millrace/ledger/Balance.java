package dev.millrace.ledger;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What became of the rollouts of a run.
 *
 * @param generated records on the rollouts topic
 * @param trained rollouts in a trained batch with at least one trained token
 * @param masked rollouts in a trained batch without one
 * @param dropped rollouts that left before a batch, by reason
 * @param deadLettered rollout records that were refused
 * @param inFlight rollouts that none of these names yet
 * @param contradictions sentences, each about a rollout that is accounted for twice or never was; at most
 *     {@value Ledger#MAX_CONTRADICTIONS}
 * @param contradictionCount how many there are in all
 */
public record Balance(long generated, long trained, long masked, Map<String, Long> dropped, long deadLettered,
    long inFlight, List<String> contradictions, long contradictionCount) {

    public Balance {
        dropped = new TreeMap<>(dropped);
        contradictions = List.copyOf(contradictions);
    }

    /** Rollouts that left before a batch, for any reason. */
    public long droppedInAll() {
        return dropped.values().stream().mapToLong(Long::longValue).sum();
    }

    /** True if every rollout is accounted for exactly once. */
    public boolean addsUp() {
        return contradictionCount == 0 && generated == trained + masked + droppedInAll() + deadLettered + inFlight;
    }
}
