package dev.millrace.workloads;

/**
 * What goes wrong under load.
 *
 * @param killAfterSeconds of load that is counted, after which one instance of the topology is killed and another is
 *     started in its place at once; 0 kills none. Instances then run in processes of their own
 */
public record FaultPlan(int killAfterSeconds) {
    public FaultPlan {
        if (killAfterSeconds < 0) {
            throw new IllegalArgumentException("kill_after_seconds must be at least 0: " + killAfterSeconds);
        }
    }

    /** Nothing. */
    public static FaultPlan defaults() {
        return new FaultPlan(0);
    }
}
