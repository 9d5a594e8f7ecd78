package dev.millrace.conformance;

/**
 * How many more rollouts may be started without any of them becoming too stale:
 * {@code min(maxConcurrent - running, (maxStaleness + version + 1) * batchSize - (accepted + running))}.
 *
 * <p>The learner consumes {@code batchSize} rollouts per version, so the n-th rollout of the run is consumed at version
 * {@code (n - 1) / batchSize}; bounding n bounds the staleness at consumption without looking at any rollout.
 * Accepted rollouts count from version 0 on: after a restart at version v they must be set to {@link #acceptedAt}, or
 * the formula admits v batches too many.
 *
 * <p>Unit: rollout. Source: AReaL (arXiv 2505.24298) {@code StalenessManager}, commit 4aef98d, whose {@code
 * get_capacity} raises a concurrency or batch size below 1 to 1 in silence; here they are refused. Immutable and
 * thread-safe.
 *
 * @param maxConcurrent rollouts running at once, at least 1
 * @param batchSize rollouts the learner consumes per version, at least 1
 * @param maxStaleness largest staleness of a rollout when it is consumed, in versions, not negative
 */
record AdmissionCapacity(int maxConcurrent, int batchSize, int maxStaleness) {
    public AdmissionCapacity {
        if (maxConcurrent < 1 || batchSize < 1 || maxStaleness < 0) {
            throw new IllegalArgumentException("admission needs maxConcurrent >= 1, batchSize >= 1, maxStaleness >= 0:"
                    + " maxConcurrent=" + maxConcurrent + ", batchSize=" + batchSize
                    + ", maxStaleness=" + maxStaleness);
        }
    }

    /**
     * Rollouts that may be started now; negative when there are more than the limits allow, for instance after they
     * were lowered.
     *
     * @param version current version, not negative
     * @param running rollouts started and not finished
     * @param accepted rollouts finished and not rejected, since version 0
     * @throws IllegalArgumentException if a count is negative, which means that an event was missed
     */
    public long capacity(long version, long running, long accepted) {
        if (version < 0 || running < 0 || accepted < 0) {
            throw new IllegalArgumentException("version and counts must not be negative: version=" + version
                    + ", running=" + running + ", accepted=" + accepted);
        }
        return referenceCapacity(maxConcurrent, batchSize, maxStaleness, version, running, accepted);
    }

    /** Rollouts that may wait to be started: {@code (maxStaleness + 1) * batchSize}. */
    public long pendingLimit() {
        return referencePendingLimit(batchSize, maxStaleness);
    }

    /**
     * Returns how many accepted rollouts a run that restarts at {@code version} must count: {@code version *
     * batchSize}.
     */
    public long acceptedAt(long version) {
        return version * batchSize;
    }

    /** AReaL's capacity for any limits and counts, unchecked, with sizes below 1 raised to 1; for comparison only. */
    public static long referenceCapacity(
            long maxConcurrent, long batchSize, long maxStaleness, long version, long running, long accepted) {
        long byConcurrency = Math.max(1, maxConcurrent) - running;
        long byStaleness = (maxStaleness + version + 1) * Math.max(1, batchSize) - (accepted + running);
        return Math.min(byConcurrency, byStaleness);
    }

    /** AReaL's pending limit, where a batch size below 1 is not raised; for comparison only. */
    public static long referencePendingLimit(long batchSize, long maxStaleness) {
        return (maxStaleness + 1) * batchSize;
    }
}
