package dev.millrace.audit.ledger;

import java.util.Map;
import java.util.TreeMap;

/**
 * Number of rollouts by their end:
 * {@code generated = trained + masked + dropped + dead-lettered + in flight + superseded}, plus those whose end is no
 * longer on the log.
 *
 * @param generated records on the rollouts topic, without the second records of redriven ones
 * @param trained in a trained batch, with at least one trained token
 * @param masked in a trained batch without one, by the stage that masked the last of its tokens
 * @param dropped left before a batch, by reason
 * @param deadLettered refused, by reason; without those that were redriven
 * @param waitingForScore no score of this record is on the log
 * @param waitingForBatch scored, and not in a batch yet: on its way through join, group or queue
 * @param waitingForStep in a batch that no step has trained on
 * @param untold older than the kept decisions, and without a kept decision
 * @param superseded of an older epoch, and in flight when the next epoch began; no role waits for them
 */
public record Tally(
        long generated,
        long trained,
        Map<String, Long> masked,
        Map<String, Long> dropped,
        Map<String, Long> deadLettered,
        long waitingForScore,
        long waitingForBatch,
        long waitingForStep,
        long untold,
        long superseded) {

    /** No rollout. */
    public static final Tally NONE = new Tally(0, 0, Map.of(), Map.of(), Map.of(), 0, 0, 0, 0, 0);

    public Tally {
        masked = new TreeMap<>(masked);
        dropped = new TreeMap<>(dropped);
        deadLettered = new TreeMap<>(deadLettered);
    }

    /** Masked by any stage. */
    public long maskedInAll() {
        return sum(masked);
    }

    /** Dropped for any reason. */
    public long droppedInAll() {
        return sum(dropped);
    }

    /** Refused for any reason. */
    public long deadLetteredInAll() {
        return sum(deadLettered);
    }

    /** Waiting anywhere. */
    public long inFlight() {
        return waitingForScore + waitingForBatch + waitingForStep;
    }

    /** Both together. */
    public Tally plus(Tally other) {
        return new Tally(
                generated + other.generated,
                trained + other.trained,
                merged(masked, other.masked),
                merged(dropped, other.dropped),
                merged(deadLettered, other.deadLettered),
                waitingForScore + other.waitingForScore,
                waitingForBatch + other.waitingForBatch,
                waitingForStep + other.waitingForStep,
                untold + other.untold,
                superseded + other.superseded);
    }

    /** Whether the sum is what was generated. */
    public boolean addsUp() {
        return generated
                == trained + maskedInAll() + droppedInAll() + deadLetteredInAll() + inFlight() + untold + superseded;
    }

    private static Map<String, Long> merged(Map<String, Long> one, Map<String, Long> other) {
        Map<String, Long> both = new TreeMap<>(one);
        other.forEach((reason, count) -> both.merge(reason, count, Long::sum));
        return both;
    }

    private static long sum(Map<String, Long> counts) {
        return counts.values().stream().mapToLong(Long::longValue).sum();
    }
}
