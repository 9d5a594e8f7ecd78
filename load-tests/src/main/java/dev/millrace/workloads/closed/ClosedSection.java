package dev.millrace.workloads.closed;

/**
 * The section of a workload file that makes it one of the closed loop; the rest of the file is a run's configuration.
 *
 * @param closed what is simulated, and for how long
 */
public record ClosedSection(ClosedPlan closed) {
    public static ClosedSection defaults() {
        return new ClosedSection(ClosedPlan.defaults());
    }
}
