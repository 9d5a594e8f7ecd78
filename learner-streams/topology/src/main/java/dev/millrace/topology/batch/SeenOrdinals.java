package dev.millrace.topology.batch;

import java.util.TreeSet;

/**
 * The requests with at least one arrival. Requests are numbered without a gap, so a request without an arrival is a
 * hole before later ones. A hole that was given up no longer counts. After a restart, holes before the first arrival
 * are ignored. Confined to one task.
 */
final class SeenOrdinals {
    private static final long NONE = -1;

    private final TreeSet<Long> seen = new TreeSet<>();
    /** Up to here there is no hole that the cutter waits for. */
    private long passed = NONE;

    private boolean isBegun;

    /** @param isBegun whether the run is at its beginning, so that the first request is 0 */
    SeenOrdinals(boolean isBegun) {
        this.isBegun = isBegun;
    }

    /** Records that a sample of a request has arrived. */
    void see(long ordinal) {
        if (!isBegun) {
            isBegun = true;
            passed = ordinal - 1;
        }
        if (ordinal > passed && seen.add(ordinal)) {
            advance();
        }
    }

    /** Whether a request before this one has no arrival and was not given up. */
    boolean hasHoleBefore(long ordinal) {
        return passed + 1 < ordinal;
    }

    /** Gives up the holes before a request. */
    void giveUpBefore(long ordinal) {
        if (ordinal - 1 > passed) {
            passed = ordinal - 1;
            seen.headSet(ordinal).clear();
            advance();
        }
    }

    private void advance() {
        while (seen.remove(passed + 1)) {
            passed++;
        }
    }
}
