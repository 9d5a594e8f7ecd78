package dev.millrace.topology.batch;

import java.util.TreeSet;

/**
 * Of which requests something has come: requests are counted without a gap, so that one of which nothing has come yet is a hole
 * before those that came after it. A hole that was given up is none any more. After a restart nothing older than what was there is
 * looked for. Confined to one task.
 */
final class SeenOrdinals {
    private static final long NONE = -1;

    private final TreeSet<Long> seen = new TreeSet<>();
    /** Up to here there is no hole, or none that is waited for. */
    private long passed = NONE;

    private boolean isBegun;

    /** @param isBegun whether the run is at its beginning, so that the first request is 0 */
    SeenOrdinals(boolean isBegun) {
        this.isBegun = isBegun;
    }

    /** A sample of a request has come. */
    void see(long ordinal) {
        if (!isBegun) {
            isBegun = true;
            passed = ordinal - 1;
        }
        if (ordinal > passed && seen.add(ordinal)) {
            advance();
        }
    }

    /** Whether nothing has come of a request before this one, and it was not given up. */
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
