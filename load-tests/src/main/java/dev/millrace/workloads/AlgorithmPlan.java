package dev.millrace.workloads;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.StalenessRules;

/**
 * Default algorithm with these staleness limits. The default never binds: without a learner every waiting rollout
 * ages.
 *
 * @param staleness keys of {@code algorithm.staleness}
 */
public record AlgorithmPlan(StalenessRules staleness) {
    /** More versions than any load makes. */
    private static final long NEVER_BINDS = 1_000_000_000;

    public static AlgorithmPlan defaults() {
        return new AlgorithmPlan(new StalenessRules(NEVER_BINDS, 0, 0.0));
    }

    public Algorithm algorithm() {
        return Algorithm.defaults().with(builder -> builder.staleness(staleness));
    }
}
