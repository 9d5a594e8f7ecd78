package dev.millrace.workloads;

import dev.millrace.workloads.topology.Distribution;

/**
 * A learner that takes batches one after the other and publishes a version after each, without computing anything.
 *
 * @param enabled whether there is one; without, all rollouts are sampled behind one version that was there before
 * @param stepMs how long it takes for a batch
 */
public record LearnerPlan(boolean enabled, Distribution stepMs) {
    /** A step takes 100 ms. */
    public static LearnerPlan defaults() {
        return new LearnerPlan(true, Distribution.fixed(100));
    }
}
