package dev.millrace.topology.task;

import java.util.Optional;

/**
 * Decides when a commit need not wait for its interval: somebody waits for a record that was just made, and it was made of what
 * had just come.
 *
 * <p>Both hops of the topology commit together. What the first makes visible with one commit, the second would make visible
 * with the next, a whole interval later; a commit of its own saves that. A task that lags behind its input has no such reader to
 * please: there, more commits would only cost throughput, and make it lag more.
 */
final class PromptCommit {
    private static final int FRESH_INTERVALS = 2;

    private final Optional<String> awaited;
    private final long freshMs;
    private boolean made;

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
    }

    /**
     * Whether to commit now, after a record was worked off.
     *
     * @param ageMs of that record, since it was written
     */
    boolean isDue(long ageMs) {
        boolean due = made && ageMs <= freshMs;
        made = false;
        return due;
    }
}
