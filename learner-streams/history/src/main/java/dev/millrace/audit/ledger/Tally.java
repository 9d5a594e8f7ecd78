package dev.millrace.audit.ledger;

import java.util.Map;
import java.util.TreeMap;

/**
 * Rollouts by their end: {@code generated = trained + masked + dropped + dead-lettered + in flight + superseded}, plus
 * those whose end is deleted.
 *
 * @param generated without second records of redriven ones
 * @param masked in a trained batch without one, by the stage that masked its last
 * @param dropped before a batch, by reason
 * @param deadLettered and not redriven, by reason
 * @param unfinished without an end on the log
 */
public record Tally(
        long generated,
        long trained,
        Map<String, Long> masked,
        Map<String, Long> dropped,
        Map<String, Long> deadLettered,
        Unfinished unfinished) {

    public static final Tally NONE = new Tally(0, 0, Map.of(), Map.of(), Map.of(), new Unfinished(0, 0, 0, 0, 0));

    /**
     * Rollouts without an end.
     *
     * @param expired older than the kept decisions, and undecided
     * @param superseded in flight when a later epoch began
     */
    public record Unfinished(
            long waitingForScore, long waitingForBatch, long waitingForStep, long expired, long superseded) {

        private Unfinished plus(Unfinished other) {
            return new Unfinished(
                    waitingForScore + other.waitingForScore,
                    waitingForBatch + other.waitingForBatch,
                    waitingForStep + other.waitingForStep,
                    expired + other.expired,
                    superseded + other.superseded);
        }
    }

    public Tally {
        masked = new TreeMap<>(masked);
        dropped = new TreeMap<>(dropped);
        deadLettered = new TreeMap<>(deadLettered);
    }

    public long maskedInAll() {
        return sum(masked);
    }

    public long droppedInAll() {
        return sum(dropped);
    }

    public long deadLetteredInAll() {
        return sum(deadLettered);
    }

    public long inFlight() {
        return unfinished.waitingForScore() + unfinished.waitingForBatch() + unfinished.waitingForStep();
    }

    public Tally plus(Tally other) {
        return new Tally(
                generated + other.generated,
                trained + other.trained,
                merged(masked, other.masked),
                merged(dropped, other.dropped),
                merged(deadLettered, other.deadLettered),
                unfinished.plus(other.unfinished));
    }

    public boolean addsUp() {
        return generated
                == trained
                        + maskedInAll()
                        + droppedInAll()
                        + deadLetteredInAll()
                        + inFlight()
                        + unfinished.expired()
                        + unfinished.superseded();
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
