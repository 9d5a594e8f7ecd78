package dev.millrace.topology.task;

/**
 * A wait without progress for too long.
 *
 * @param sinceMs when the last progress was made, on the caller's clock
 */
public record StallAlarm(Wait what, long sinceMs) {

    /** Names the stage, the partition, what it waits for, and since when. */
    public String sentence(long nowMs) {
        return what.stage() + ", partition " + what.partition() + ": " + what.what() + "; no progress for "
                + (nowMs - sinceMs) / 1000 + " s";
    }
}
