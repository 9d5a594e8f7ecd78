package dev.millrace.chaos.clock;

import java.time.Clock;
import java.time.Instant;

/** What the calls of a process whose clock was set are sent to. Thread-safe. */
public final class ShiftedClock {
    private static volatile long shiftMs;

    private ShiftedClock() {}

    /** From now on the clock is so far from the right time. */
    static void set(long ms) {
        shiftMs = ms;
    }

    /** In the place of {@link System#currentTimeMillis()}. */
    public static long currentTimeMillis() {
        return System.currentTimeMillis() + shiftMs;
    }

    /** In the place of {@link Instant#now()}. */
    public static Instant now() {
        return Instant.now().plusMillis(shiftMs);
    }

    /** In the place of {@link Clock#millis()}. */
    public static long millis(Clock clock) {
        return clock.millis() + shiftMs;
    }

    /** In the place of {@link Clock#instant()}. */
    public static Instant instant(Clock clock) {
        return clock.instant().plusMillis(shiftMs);
    }
}
