package dev.millrace.workloads.topology;

/**
 * Rate and shape of publishing.
 *
 * @param rolloutsPerSecond mean, greater than 0
 * @param generators publishing threads, each with its own producer, 1 to 64
 * @param scoreAfterMs from rollout on the log to its score
 * @param lingerMs of the producers, 0 to 1000
 */
public record LoadPlan(
        double rolloutsPerSecond, Schedule.Arrivals arrivals, int generators, Distribution scoreAfterMs, int lingerMs) {
    public LoadPlan {
        if (!(rolloutsPerSecond > 0.0 && rolloutsPerSecond <= 1e7)) {
            throw new IllegalArgumentException(
                    "rollouts_per_second must be greater than 0 and at most 1e7: " + rolloutsPerSecond);
        }
        if (generators < 1 || generators > 64) {
            throw new IllegalArgumentException("generators must be 1 to 64: " + generators);
        }
        if (lingerMs < 0 || lingerMs > 1000) {
            throw new IllegalArgumentException("linger_ms must be 0 to 1000: " + lingerMs);
        }
    }

    public static LoadPlan defaults() {
        return new LoadPlan(100, Schedule.Arrivals.EVEN, 1, Distribution.fixed(20), 5);
    }

    public LoadPlan withRate(double perSecond) {
        return new LoadPlan(perSecond, arrivals, generators, scoreAfterMs, lingerMs);
    }

    public LoadPlan withScoreAfterMs(long millis) {
        return new LoadPlan(rolloutsPerSecond, arrivals, generators, Distribution.fixed(millis), lingerMs);
    }
}
