package dev.millrace.replay.retrain;

import java.time.Duration;

/**
 * @param batches most last batches; a surge in length takes 108 to detect
 * @param time after which no further batch is read
 */
public record TrialLimit(int batches, Duration time) {
    /** Tolerable for an interactive command. */
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
