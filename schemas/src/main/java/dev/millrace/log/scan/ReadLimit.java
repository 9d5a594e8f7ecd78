package dev.millrace.log.scan;

import java.time.Duration;

/**
 * When reading that has not come to its end is given up.
 *
 * @param restarts whether it begins anew with every step forward, so that only a standstill counts
 */
public record ReadLimit(Duration duration, boolean restarts) {

    /** After so long, however much is still read. */
    public static ReadLimit within(Duration duration) {
        return new ReadLimit(duration, false);
    }

    /** After so long without a step forward; the mark of a transaction is one, too. */
    public static ReadLimit withoutProgress(Duration duration) {
        return new ReadLimit(duration, true);
    }
}
