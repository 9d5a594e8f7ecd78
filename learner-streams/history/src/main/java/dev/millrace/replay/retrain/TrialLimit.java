package dev.millrace.replay.retrain;

import java.time.Duration;

/**
 * How much of a run is tried.
 *
 * @param batches the last so many at most; a length that surges is seen over 108 of them
 * @param time after which no further batch is read
 */
public record TrialLimit(int batches, Duration time) {
    /** What a person waits for. */
    public static final TrialLimit DEFAULT = new TrialLimit(256, Duration.ofSeconds(30));

    public TrialLimit {
        if (batches < 1) {
            throw new IllegalArgumentException("a trial needs at least 1 batch: " + batches);
        }
        if (time.isNegative() || time.isZero()) {
            throw new IllegalArgumentException("a trial needs a time above 0: " + time);
        }
    }
}
