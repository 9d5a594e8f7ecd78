package dev.millrace.view.follow;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Whether anybody looks at a run: listens to what is new of it, or asked of it a moment ago. A run that nobody looks at is not read, so that a page that is
 * open to be opened costs the run nothing. Thread-safe.
 */
final class Onlookers {
    private static final long STAYS_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final Events events;
    private final LongSupplier nanos;
    private final AtomicLong asked;

    /** @param nanos a clock of which differences count */
    Onlookers(Events events, LongSupplier nanos) {
        this.events = events;
        this.nanos = nanos;
        this.asked = new AtomicLong(nanos.getAsLong());
    }

    /** Somebody asks now. */
    void ask() {
        asked.set(nanos.getAsLong());
    }

    /** Whether there are any. */
    boolean areThere() {
        return events.isWatched() || nanos.getAsLong() - asked.get() < STAYS_NANOS;
    }
}
