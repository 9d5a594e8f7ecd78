package dev.millrace.replay.retrain;

import java.time.Duration;

/**
 * Bound of a trial.
 *
 * @param batches most of the last batches to use; detecting a surge in length takes 108
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
