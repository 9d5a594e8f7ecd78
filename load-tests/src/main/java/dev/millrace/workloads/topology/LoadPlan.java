package dev.millrace.workloads.topology;

/**
 * How much is published, and how.
 *
 * @param rolloutsPerSecond mean rate, greater than 0
 * @param arrivals how they lie in time
 * @param generators threads that publish rollouts, each with a producer of its own, 1 to 64
 * @param scoreAfterMs how long after a rollout is on the log its score is published
 * @param lingerMs longest wait of a producer for company of a record, 0 to 1000
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

    /** A hundred a second, evenly, by one generator, scored 20 ms later. */
    public static LoadPlan defaults() {
        return new LoadPlan(100, Schedule.Arrivals.EVEN, 1, Distribution.fixed(20), 5);
    }

    /** The same at another rate. */
    public LoadPlan withRate(double perSecond) {
        return new LoadPlan(perSecond, arrivals, generators, scoreAfterMs, lingerMs);
    }

    /** The same with scores so long after their rollouts. */
    public LoadPlan withScoreAfterMs(long millis) {
        return new LoadPlan(rolloutsPerSecond, arrivals, generators, Distribution.fixed(millis), lingerMs);
    }
}
