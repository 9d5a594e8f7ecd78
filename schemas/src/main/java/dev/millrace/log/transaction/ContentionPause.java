package dev.millrace.log.transaction;

import java.util.function.LongUnaryOperator;

/**
 * How long a writer stays away after another came in between: a random part of a limit that begins at twice what its attempt took, and
 * doubles with each further one.
 *
 * <p>Writers fence each other for as long as their attempts overlap, and what an attempt takes depends on the machine: milliseconds, or
 * seconds on one that starts six processes at once. A fixed pause that is shorter than an attempt never parts them.
 */
final class ContentionPause {
    private static final int MOST_DOUBLINGS = 10;

    private final LongUnaryOperator random;
    private int attempts;

    /** @param random a number from 0 to below its argument */
    ContentionPause(LongUnaryOperator random) {
        this.random = random;
    }

    /**
     * Called after another failed attempt.
     *
     * @param leftNanos until the deadline, behind which nobody waits
     */
    long nanos(long attemptNanos, long leftNanos) {
        attempts = Math.min(attempts + 1, MOST_DOUBLINGS);
        long limit = Math.min(Math.max(1, attemptNanos) << attempts, leftNanos);
        return limit <= 0 ? 0 : random.applyAsLong(limit);
    }
}
