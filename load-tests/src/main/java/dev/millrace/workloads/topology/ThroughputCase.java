package dev.millrace.workloads.topology;

/**
 * One thing to compare with a copy.
 *
 * @param responseTokens of every rollout
 * @param rollouts in the backlog, a multiple of the batch size
 * @param instances of the topology
 * @param threads of each instance; the copy has as many threads as all instances together
 */
public record ThroughputCase(int responseTokens, int rollouts, int instances, int threads) {

    /** All threads together. */
    public int allThreads() {
        return instances * threads;
    }

    /** For a table. */
    public String label() {
        return responseTokens + " tokens, "
                + (instances > 1 ? instances + " instances" : threads + (threads == 1 ? " thread" : " threads"));
    }
}
