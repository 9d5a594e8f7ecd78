package dev.millrace.topology.task;

/**
 * Decides when the tasks of one stream thread commit; they commit together, in one transaction.
 *
 * <ul>
 *   <li>A record that somebody waits for, made of what had just come, is committed at once. A task that lags behind its input has no
 *       such reader to please: there, more commits would only cost throughput, and make it lag more.
 *   <li>Rollouts and scores come in bursts, one per transaction: what a burst made is committed when nothing has followed for a
 *       while, not in two parts.
 *   <li>Where records never stop, what was made waits for its commit no longer than the interval.
 * </ul>
 *
 * <p>Not thread-safe: each thread has its own.
 */
public final class PromptCommit {
    /** Between two questions whether a burst is over. */
    static final long SETTLING_MS = 10;

    private static final int FRESH_INTERVALS = 2;
    private static final long NOTHING = Long.MAX_VALUE;

    private final long intervalMs;
    private long firstMadeMs = NOTHING;
    private long arrivedMs;
    private long committedMs;
    private boolean isAwaited;

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
        arrivedMs = nowMs;
        boolean isHurried = isAwaited && ageMs <= FRESH_INTERVALS * intervalMs;
        isAwaited = false;
        return (isHurried || waited(nowMs)) && committed(nowMs);
    }

    /**
     * Whether to commit now, asked every {@link #SETTLING_MS}: what was made is all there will be for a while. Single records that
     * come again and again are committed twice in an interval at most.
     */
    boolean isSettled(long nowMs) {
        boolean isQuiet = firstMadeMs != NOTHING && nowMs - arrivedMs >= SETTLING_MS;
        return (isQuiet && nowMs - committedMs >= intervalMs / 2 || waited(nowMs)) && committed(nowMs);
    }

    private boolean waited(long nowMs) {
        return firstMadeMs != NOTHING && nowMs - firstMadeMs >= intervalMs;
    }

    private boolean committed(long nowMs) {
        firstMadeMs = NOTHING;
        committedMs = nowMs;
        return true;
    }
}
