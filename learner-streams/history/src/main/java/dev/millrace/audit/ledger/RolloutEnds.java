package dev.millrace.audit.ledger;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The ends a rollout can come to, each as a number below {@value #COUNT}, so that a place takes one byte.
 *
 * <p>Reasons are strings on the log, and anybody may write there; when more of them have come than there are numbers, the
 * rest is counted as {@code other}.
 */
final class RolloutEnds {
    static final int COUNT = 64;
    /** Nothing has been decided. */
    static final int NONE = 0;
    /** In a batch that no step has trained on yet. */
    static final int BATCHED = 1;

    static final int TRAINED = 2;
    /** Refused, redriven, and on the topic once more: this record of it does not count. */
    static final int SUPERSEDED = 3;

    private static final int FIRST_NAMED = 4;

    /** Ends that have a reason. */
    enum Kind {
        MASKED("masked by "),
        DROPPED("dropped as "),
        DEAD_LETTERED("dead-lettered for ");

        private final String verb;

        Kind(String verb) {
            this.verb = verb;
        }
    }

    private record Named(Kind kind, String reason) {}

    private static final String OTHER = "other";
    private final List<Named> named = new ArrayList<>();

    RolloutEnds() {
        for (Kind kind : Kind.values()) {
            named.add(new Named(kind, OTHER));
        }
    }

    /** The number of an end with a reason. */
    int of(Kind kind, String reason) {
        Named wanted = new Named(kind, reason);
        int known = named.indexOf(wanted);
        if (known < 0 && FIRST_NAMED + named.size() < COUNT) {
            named.add(wanted);
            known = named.size() - 1;
        }
        return FIRST_NAMED + (known < 0 ? kind.ordinal() : known);
    }

    boolean is(int end, Kind kind) {
        return end >= FIRST_NAMED && named.get(end - FIRST_NAMED).kind() == kind;
    }

    /** Counts by reason of one kind, out of counts by number. */
    Map<String, Long> counts(Kind kind, long[] byEnd) {
        Map<String, Long> counts = new TreeMap<>();
        for (int i = 0; i < named.size(); i++) {
            if (named.get(i).kind() == kind && byEnd[FIRST_NAMED + i] > 0) {
                counts.put(named.get(i).reason(), byEnd[FIRST_NAMED + i]);
            }
        }
        return counts;
    }

    /** For a sentence. */
    String text(int end) {
        return switch (end) {
            case NONE -> "not decided about";
            case BATCHED -> "in a batch";
            case TRAINED -> "trained on";
            case SUPERSEDED -> "redriven";
            default ->
                named.get(end - FIRST_NAMED).kind().verb
                        + named.get(end - FIRST_NAMED).reason();
        };
    }
}
