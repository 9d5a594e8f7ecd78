package dev.millrace.log;

import java.time.Duration;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * Liveness and readiness of one role: when its main loop last turned, and why it is not ready. The role writes, any thread reads.
 */
public final class Pulse {
    /** Longest delay of a {@code serving} record that names another version. */
    private static final long NEW_VERSION_MS = 500;

    private final LongSupplier nanos;
    private volatile long turnedNanos;
    private volatile Optional<String> whyUnready = Optional.of("it is starting");
    private long served = -1;
    /** Since when a version newer than the served one has been known; of the role alone, 0 where there is none. */
    private long outdatedSinceNanos;

    /** @param nanos a monotonic clock */
    public Pulse(LongSupplier nanos) {
        this.nanos = nanos;
        turn();
    }

    /** The loop has turned, or one step of its work that takes long is done. */
    public void turn() {
        turnedNanos = nanos.getAsLong();
    }

    /**
     * The loop has turned.
     *
     * @param why the role does not do its work, without its name; empty if it does
     */
    public void turn(Optional<String> why) {
        turn(why, true);
    }

    /**
     * As {@link #turn(Optional)}, called by the watcher of the loop.
     *
     * @param hasTurned whether it has
     */
    public void turn(Optional<String> why, boolean hasTurned) {
        whyUnready = why;
        if (hasTurned) {
            turn();
        }
    }

    /**
     * The loop of a server has turned.
     *
     * @param version that it serves; -1 for none
     * @param newest that is known
     * @param limitMs longest time for which it may keep to one version while there is a newer one
     */
    public void turnServing(long version, long newest, long limitMs) {
        long now = nanos.getAsLong();
        if (newest <= version || version != served) {
            outdatedSinceNanos = newest <= version ? 0 : now;
        } else if (outdatedSinceNanos == 0) {
            outdatedSinceNanos = now;
        }
        served = version;
        long outdatedMs = outdatedSinceNanos == 0 ? 0 : (now - outdatedSinceNanos) / 1_000_000;
        turn(
                version < 0
                        ? Optional.of("it serves no version yet")
                        : outdatedMs <= limitMs
                                ? Optional.empty()
                                : Optional.of("it serves version " + version + ", and has not loaded version "
                                        + newest
                                        + " for " + outdatedMs / 1_000 + " s, longer than weights.unserved_alarm_ms="
                                        + limitMs));
    }

    /**
     * Whether a {@code serving} record needs a transaction of its own. One that names another version goes with the next
     * rollouts or scores: retention keeps what the last record names until then.
     *
     * @param ageMs of the last record
     * @param intervalMs of records without news
     */
    public static boolean needsServing(long ageMs, long intervalMs, boolean isNewVersion) {
        return ageMs >= (isNewVersion ? Math.min(intervalMs, NEW_VERSION_MS) : intervalMs);
    }

    /** Time since the loop last turned. */
    public Duration age() {
        return Duration.ofNanos(nanos.getAsLong() - turnedNanos);
    }

    /** Why the role does not do its work; empty if it does. */
    public Optional<String> whyUnready() {
        return whyUnready;
    }
}
