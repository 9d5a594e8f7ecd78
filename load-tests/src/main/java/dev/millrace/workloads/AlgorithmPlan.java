package dev.millrace.workloads;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.StalenessRules;

/**
 * What the topology under load decides by: the default algorithm with these limits on staleness.
 *
 * <p>The default limit never binds. A load without a learner, or with one that cannot follow, ages every rollout that waits, and a
 * limit would make the measurement one of staleness. Workloads about staleness set a narrow one.
 *
 * @param staleness with the keys of {@code algorithm.staleness} of a run
 */
public record AlgorithmPlan(StalenessRules staleness) {
    /** More versions than any load makes batches. */
    private static final long NEVER_BINDS = 1_000_000_000;

    /** No rollout leaves as stale. */
    public static AlgorithmPlan defaults() {
        return new AlgorithmPlan(new StalenessRules(NEVER_BINDS, 0, 0.0));
    }

    /** The algorithm to run and to replay with. */
    public Algorithm algorithm() {
        return Algorithm.defaults().with(builder -> builder.staleness(staleness));
    }
}
