package dev.millrace.topology.task;

/**
 * Decides when the tasks of one stream thread commit; they commit together, in one transaction.
 *
 * <ul>
 *   <li>An awaited record, such as a batch, is committed at once.
 *   <li>Rollouts and scores arrive in bursts, one per transaction. Their output is committed once, after {@value #SETTLING_MS} ms
 *       without a record.
 *   <li>Other output is committed after the interval.
 *   <li>A task that lags behind its input commits at the engine's own interval, four times as long: more commits would make it lag
 *       more. With replication a commit can take as long as a second of records, and stops fetches meanwhile.
 * </ul>
 *
 * <p>The engine commits after the turn in which a commit was requested. Output of the rest of the turn is part of that commit, so
 * neither the next request nor its time starts before the turn ends; otherwise every turn would be one record long. The engine
 * does not report the end of a turn, but runs punctuators there: one calls {@link #settle} after each request.
 *
 * <p>Not thread-safe: each thread has its own.
 */
public final class PromptCommit {
    /** Time without a record that ends a burst. */
    static final long SETTLING_MS = 10;

    private static final int FRESH_INTERVALS = 2;
    private static final long NOTHING = Long.MAX_VALUE;

    private final long intervalMs;
    private long firstMadeMs = NOTHING;
    private long arrivedMs;
    private long committedMs;
    private long settlingMs = SETTLING_MS;
    private long question;
    private boolean isAwaited;
    private boolean isSettling;
    /** Whether the newest record is young, so the task keeps up. */
    private boolean isFresh;
    /** Whether a commit was requested in a turn that may not have ended. */
    private boolean isCommitting;

    /** What to do about uncommitted output. */
    enum Settling {
        COMMIT,
        ASK_LATER,
        NOTHING
    }

    /** @param intervalMs longest wait of a record for its commit while the task keeps up */
    public PromptCommit(long intervalMs) {
        this.intervalMs = intervalMs;
    }

    /** Records output. */
    void made(boolean isAwaited, long nowMs) {
        this.isAwaited |= isAwaited;
        firstMadeMs = Math.min(firstMadeMs, nowMs);
    }

    /**
     * Whether to commit now, after a processed record.
     *
     * @param ageMs of that record, since it was written
     */
    boolean isDue(long ageMs, long nowMs) {
        arrivedMs = nowMs;
        isFresh = ageMs <= FRESH_INTERVALS * intervalMs;
        boolean isDue = isFresh && !isCommitting && (isAwaited || waited(nowMs));
        isAwaited = false;
        isCommitting |= isDue;
        return isDue;
    }

    /** Whether to schedule {@link #settle}: there is uncommitted output and no call is scheduled. */
    boolean beginsToSettle() {
        return isFresh && !isSettling && firstMadeMs != NOTHING;
    }

    /**
     * Registers the next caller of {@link #settle}; an earlier one gets {@link Settling#NOTHING}.
     *
     * @return its number
     */
    long ask() {
        isSettling = true;
        return ++question;
    }

    /**
     * Delay of the next {@link #settle}. Grows up to the interval while records arrive without a pause, since each call makes a
     * turn shorter.
     */
    long askInMs(long nowMs) {
        if (isCommitting) {
            return 1;
        }
        long leftMs = firstMadeMs == NOTHING ? intervalMs : firstMadeMs + intervalMs - nowMs;
        return Math.max(1, Math.min(settlingMs, leftMs));
    }

    /**
     * What to do now, at the end of a turn. Commits recurring single records at most twice per interval.
     *
     * @param question number of the caller
     */
    Settling settle(long question, long nowMs) {
        if (question != this.question) {
            return Settling.NOTHING;
        }
        boolean isQuiet = nowMs - arrivedMs >= SETTLING_MS;
        settlingMs = isQuiet ? SETTLING_MS : Math.min(2 * settlingMs, Math.max(SETTLING_MS, intervalMs));
        if (isCommitting || !isFresh || firstMadeMs == NOTHING) {
            stopSettling();
            if (isCommitting) {
                committed(nowMs);
            }
            return Settling.NOTHING;
        }
        if (isQuiet && nowMs - committedMs >= intervalMs / 2 || waited(nowMs)) {
            stopSettling();
            committed(nowMs);
            return Settling.COMMIT;
        }
        return Settling.ASK_LATER;
    }

    /** Unregisters the caller of {@link #settle}. */
    void stopSettling() {
        isSettling = false;
    }

    private boolean waited(long nowMs) {
        return firstMadeMs != NOTHING && nowMs - firstMadeMs >= intervalMs;
    }

    private void committed(long nowMs) {
        firstMadeMs = NOTHING;
        committedMs = nowMs;
        isCommitting = false;
    }
}
