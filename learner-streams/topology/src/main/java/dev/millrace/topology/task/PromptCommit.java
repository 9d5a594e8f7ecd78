package dev.millrace.topology.task;

import java.util.Optional;

/**
 * Decides when a commit need not wait for its interval.
 *
 * <ul>
 *   <li>Somebody waits for a record that was just made, and it was made of what had just come. A task that lags behind its input has
 *       no such reader to please: there, more commits would only cost throughput, and make it lag more.
 *   <li>A task has made records and then nothing came for a while. Rollouts and scores come in bursts, one per transaction, so what a
 *       burst made is committed as a whole and at once, and not some time later in two parts.
 * </ul>
 */
final class PromptCommit {
    private static final int FRESH_INTERVALS = 2;

    private final Optional<String> awaited;
    private final long freshMs;
    private boolean made;
    private boolean isUncommitted;
    private boolean isBusy;

    /**
     * @param awaited topic on which somebody waits for records
     * @param commitIntervalMs of the engine
     */
    PromptCommit(Optional<String> awaited, long commitIntervalMs) {
        this.awaited = awaited;
        this.freshMs = FRESH_INTERVALS * commitIntervalMs;
    }

    /** A record went to a topic. */
    void made(String topic) {
        made |= awaited.isPresent() && awaited.get().equals(topic);
        isUncommitted = true;
    }

    /**
     * Whether to commit now, after a record was worked off.
     *
     * @param ageMs of that record, since it was written
     */
    boolean isDue(long ageMs) {
        boolean due = made && ageMs <= freshMs;
        made = false;
        isBusy = true;
        isUncommitted &= !due;
        return due;
    }

    /** Whether to commit now, asked at even intervals: records were made, and nothing has come since it was asked before. */
    boolean isSettled() {
        boolean settled = isUncommitted && !isBusy;
        isBusy = false;
        isUncommitted &= !settled;
        return settled;
    }
}
