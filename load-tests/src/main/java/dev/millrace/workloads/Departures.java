package dev.millrace.workloads;

import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.schemas.Outcome;
import dev.millrace.topology.task.OutcomeReason;
import dev.millrace.workloads.topology.LoadException;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Counts, by reason, the records of a run that never reach a batch. Written by one thread, read by any. */
public final class Departures {
    private static final String REFUSED = "refused";

    private final Map<String, Long> byReason = new TreeMap<>();
    private String first = "";

    synchronized void left(Outcome outcome) {
        count(outcome.getReason(), outcome.getRolloutId() + ": " + outcome.getDetail());
    }

    synchronized void refused(ConsumerRecord<byte[], byte[]> deadLetter) {
        count(REFUSED, DeadLetterHeaders.text(deadLetter.headers(), DeadLetterHeaders.MESSAGE));
    }

    private void count(String reason, String sentence) {
        if (first.isEmpty()) {
            first = sentence;
        }
        byReason.merge(reason, 1L, Long::sum);
    }

    /** How many left for this reason so far. */
    public synchronized long of(OutcomeReason reason) {
        return byReason.getOrDefault(reason.code(), 0L);
    }

    /** The counts and the first one's reason, as the end of a sentence. */
    @Override
    public synchronized String toString() {
        return byReason.isEmpty()
                ? "no rollout left without reaching a batch"
                : byReason.entrySet().stream()
                                .map(reason -> reason.getValue() + " as " + reason.getKey())
                                .collect(Collectors.joining(", "))
                        + " left without reaching a batch; the first, " + first;
    }

    synchronized void requireNone() {
        if (!byReason.isEmpty()) {
            throw new LoadException("cannot see every rollout in a batch: " + this);
        }
    }
}
