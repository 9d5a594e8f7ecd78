package dev.millrace.topology.task;

/**
 * Decides when the tasks of one stream thread commit; they commit together, in one transaction.
 *
 * <ul>
 *   <li>A record that somebody waits for, made of what had just come, is committed at once. A task that lags behind its input has no
 *       such reader to please: there, more commits would only cost throughput, and make it lag more.
 *   <li>Rollouts and scores come in bursts, one per transaction: what a burst made is committed when nothing has followed for a
 *       while, not in two parts.
 *   <li>Otherwise what was made waits for its commit for the interval. Where records never stop, questions come ever later, a commit
 *       counts as under way until the next, and the engine's own interval, four times as long, is what bounds the wait.
 * </ul>
 *
 * <p>The engine commits behind the turn in which it is asked to, and that may take longer than the interval, on brokers that
 * replicate. What is made in the rest of the turn goes with it, so time counts anew only from a later turn; else every turn would
 * end in a commit, and be of one record.
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
    private long arrivals;
    private long arrivalsSeen;
    private long committedMs;
    private boolean isAwaited;
    private boolean isSettling;
    /** The engine was asked for a commit within a turn, which may still go on. */
    private boolean isCommitting;

    /** What is to be done about what was made. */
    enum Settling {
        COMMIT,
        ASK_LATER,
        NOTHING
    }

    /** @param intervalMs longest time that a record waits for its commit */
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
        arrivals++;
        boolean isHurried = isAwaited && ageMs <= FRESH_INTERVALS * intervalMs;
        isAwaited = false;
        boolean isDue = isHurried || !isCommitting && waited(nowMs);
        if (isDue) {
            committed(nowMs);
            isCommitting = true;
        }
        return isDue;
    }

    /**
     * Whether something was made or committed and nobody asks yet whether more follows; then the caller does,
     * {@link #SETTLING_MS} from now.
     */
    boolean beginsToSettle() {
        if (isSettling || firstMadeMs == NOTHING && !isCommitting) {
            return false;
        }
        isSettling = true;
        arrivalsSeen = arrivals;
        return true;
    }

    /**
     * What to do now, at the end of a turn. Single records that come again and again are committed twice in an interval at most. Where
     * nothing is to be asked later, what is made next begins anew.
     */
    Settling settle(long nowMs) {
        boolean isQuiet = arrivals == arrivalsSeen;
        arrivalsSeen = arrivals;
        if (firstMadeMs == NOTHING) {
            isSettling = false;
            isCommitting = false;
            return Settling.NOTHING;
        }
        if (isCommitting) {
            isCommitting = false;
            firstMadeMs = nowMs;
            return Settling.ASK_LATER;
        }
        if (isQuiet && nowMs - committedMs >= intervalMs / 2 || waited(nowMs)) {
            committed(nowMs);
            isSettling = false;
            return Settling.COMMIT;
        }
        return Settling.ASK_LATER;
    }

    /** Whoever asked does so no longer. */
    void stopSettling() {
        isSettling = false;
    }

    private boolean waited(long nowMs) {
        return firstMadeMs != NOTHING && nowMs - firstMadeMs >= intervalMs;
    }

    private void committed(long nowMs) {
        firstMadeMs = NOTHING;
        committedMs = nowMs;
    }
}
