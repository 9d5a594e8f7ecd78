package dev.millrace.workloads;

/**
 * What lies on the log before the topology starts.
 *
 * @param rollouts with their scores, whole groups, at most 10,000,000; 0 for none
 */
public record BacklogPlan(int rollouts) {
    public BacklogPlan {
        if (rollouts < 0 || rollouts > 10_000_000) {
            throw new IllegalArgumentException("rollouts must be 0 to 10000000: " + rollouts);
        }
    }

    /** None. */
    public static BacklogPlan defaults() {
        return new BacklogPlan(0);
    }
}
