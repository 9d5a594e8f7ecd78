package dev.millrace.topology.task;

/**
 * Decides when the tasks of one stream thread commit; they commit together, in one transaction.
 *
 * <ul>
 *   <li>A record that somebody waits for is committed at once.
 *   <li>Rollouts and scores come in bursts, one per transaction: what a burst made is committed when nothing has followed for a
 *       while, not in two parts.
 *   <li>Otherwise what was made waits for its commit for the interval.
 *   <li>A task that lags behind its input commits at the engine's own interval, four times as long: nobody waits for what is late
 *       anyway, and more commits would make it lag more. On brokers that replicate a commit can take as long as the records of a
 *       second, and fetches stand still meanwhile.
 * </ul>
 *
 * <p>The engine commits behind the turn in which it is asked to, and that may take longer than the interval, on brokers that
 * replicate. What is made in the rest of the turn goes with it, so the next commit is not asked for, and no time counted, before the
 * turn is over; else every turn would end in a commit, and be of one record. The engine says nothing of a turn's end, but asks there
 * what it was told to ask: {@link #settle} is asked behind each demand for a commit.
 *
 * <p>Not thread-safe: each thread has its own.
 */
public final class PromptCommit {
    /** After so long without a record a burst is over. */
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
    /** Of the newest record: a task that keeps up. */
    private boolean isFresh;
    /** The engine was asked for a commit within a turn, which may still go on. */
    private boolean isCommitting;

    /** What is to be done about what was made. */
    enum Settling {
        COMMIT,
        ASK_LATER,
        NOTHING
    }

    /** @param intervalMs longest time that a record waits for its commit where its task keeps up */
    public PromptCommit(long intervalMs) {
        this.intervalMs = intervalMs;
    }

    /** A record was made, for which somebody waits or not. */
    void made(boolean isAwaited, long nowMs) {
        this.isAwaited |= isAwaited;
        firstMadeMs = Math.min(firstMadeMs, nowMs);
    }

    /**
     * Whether to commit now, after a record was worked off.
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

    /** Whether {@link #settle} is to be asked, since something was made or is being committed, and nobody asks yet. */
    boolean beginsToSettle() {
        return isFresh && !isSettling && firstMadeMs != NOTHING;
    }

    /**
     * Registers the next caller of {@link #settle}; an earlier one gets no answer any more.
     *
     * @return the question's number
     */
    long ask() {
        isSettling = true;
        return ++question;
    }

    /**
     * In how long to ask. Where records come without a pause questions come ever later, up to the interval: a thread works off fewer
     * records in one go whenever it was asked something.
     */
    long askInMs(long nowMs) {
        if (isCommitting) {
            return 1;
        }
        long leftMs = firstMadeMs == NOTHING ? intervalMs : firstMadeMs + intervalMs - nowMs;
        return Math.max(1, Math.min(settlingMs, leftMs));
    }

    /**
     * What to do now, at the end of a turn. Single records that come again and again are committed twice in an interval at most. Where
     * nothing is to be asked later, what is made next begins anew.
     *
     * @param question its number
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
