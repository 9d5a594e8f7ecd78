package dev.millrace.generator.staleness;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * How much of what one generator sent was refused: since the newest version, and of its newest records.
 *
 * <p>Counting since the newest version keeps a record that is refused now and then in a run of weeks from ever adding up.
 * Confined to admission's thread.
 */
final class RefusedRecords {
    private final QuarantineConfig config;
    /** Which of the generator's records the refused ones among its newest were, counted from 1. */
    private final Deque<Long> places = new ArrayDeque<>();

    private long records;
    private long sinceVersion;

    RefusedRecords(QuarantineConfig config) {
        this.config = config;
    }

    /**
     * One more was refused.
     *
     * @param of how many records since the one refused before, itself included; at least 1
     */
    void refused(long of) {
        records += Math.max(1, of);
        places.addLast(records);
        while (places.getFirst() <= records - config.windowRecords()) {
            places.removeFirst();
        }
        sinceVersion++;
    }

    /** A new version has appeared. */
    void progress() {
        sinceVersion = 0;
    }

    /** Whether it is too much. */
    boolean isTooMuch() {
        int enough = config.refusedRecords();
        if (enough == 0) {
            return false;
        }
        long newest = Math.min(records, config.windowRecords());
        int atLeast = Math.min(enough, config.windowRecords());
        return sinceVersion >= enough || places.size() >= atLeast && places.size() >= config.refusedShare() * newest;
    }

    /** What was counted, for a sentence. */
    String sentence() {
        return places.size() + " of its last " + Math.min(records, config.windowRecords()) + " records were refused, "
                + sinceVersion + " since the newest version";
    }
}
