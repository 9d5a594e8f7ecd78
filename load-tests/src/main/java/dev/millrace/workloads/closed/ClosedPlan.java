package dev.millrace.workloads.closed;

import dev.millrace.workloads.topology.Distribution;

/**
 * What a closed loop simulates, and its budget, counted from the end of a run's first step.
 *
 * @param environmentMs reaction time of an environment per turn, at most 10 minutes; sequences wait concurrently
 * @param stepMs added to every optimizer step, at most 10 minutes
 * @param batchSequences replaces {@code admission.batch_sequences} and {@code topology.batch.sequences}; 0 keeps them
 * @param seconds budget in wall-clock time; 0 for none
 * @param tokens budget in trained tokens; 0 for none. The first budget used up ends a run; at least one is required
 * @param reward mean reward whose time is reported, in (0, 1]
 * @param overSteps steps that the mean, first and last reward cover, at least 1
 * @param limitSeconds longest run, start included, at least 10
 * @param brokerHeapMb of the broker started if no cluster is given, at least 256
 */
public record ClosedPlan(
        Distribution environmentMs,
        Distribution stepMs,
        int batchSequences,
        double seconds,
        long tokens,
        double reward,
        int overSteps,
        double limitSeconds,
        int brokerHeapMb,
        long seed) {

    private static final long LONGEST_MS = 600_000;
    private static final double LEAST_LIMIT_S = 10;
    private static final int LEAST_HEAP_MB = 256;

    public ClosedPlan {
        requireShort("environment_ms", environmentMs);
        requireShort("step_ms", stepMs);
        if (batchSequences < 0) {
            throw new IllegalArgumentException("batch_sequences must be at least 0: " + batchSequences);
        }
        if (!(seconds >= 0 && seconds < Double.POSITIVE_INFINITY) || tokens < 0 || seconds == 0 && tokens == 0) {
            throw new IllegalArgumentException(
                    "seconds and tokens must be at least 0 and one of them more, or a run would never end: seconds="
                            + seconds + ", tokens=" + tokens);
        }
        if (!(reward > 0 && reward <= 1)) {
            throw new IllegalArgumentException("reward must be above 0 and at most 1: " + reward);
        }
        if (overSteps < 1) {
            throw new IllegalArgumentException("over_steps must be at least 1: " + overSteps);
        }
        if (!(limitSeconds >= LEAST_LIMIT_S && limitSeconds > seconds && limitSeconds < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("limit_seconds must be at least " + LEAST_LIMIT_S
                    + " and more than seconds " + seconds + ": " + limitSeconds);
        }
        if (brokerHeapMb < LEAST_HEAP_MB) {
            throw new IllegalArgumentException(
                    "broker_heap_mb must be at least " + LEAST_HEAP_MB + ": " + brokerHeapMb);
        }
    }

    private static void requireShort(String key, Distribution ms) {
        if (ms.most() > LONGEST_MS) {
            throw new IllegalArgumentException(key + ".most must be at most " + LONGEST_MS + " ms: " + ms.most());
        }
    }

    /** True once a budget is used up. */
    public boolean isUsedUp(double afterSeconds, long trainedTokens) {
        return seconds > 0 && afterSeconds >= seconds || tokens > 0 && trainedTokens >= tokens;
    }

    /** No simulated time; 30 seconds. */
    public static ClosedPlan defaults() {
        return new ClosedPlan(Distribution.fixed(0), Distribution.fixed(0), 0, 30, 0, 0.9, 10, 300, 512, 1);
    }
}
