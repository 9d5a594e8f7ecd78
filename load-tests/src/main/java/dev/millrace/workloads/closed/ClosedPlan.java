package dev.millrace.workloads.closed;

import dev.millrace.workloads.topology.Distribution;

/**
 * What is simulated in a closed loop, and how long it continues.
 *
 * <p>Everything is counted from the end of a run's first step on, so that the start of its roles is no part of it.
 *
 * @param environmentMs how long an environment takes to react to a turn, the last one of a rollout included, at most 10
 *     minutes; sequences wait side by side
 * @param stepMs what is added to the time that an optimiser step takes by itself, at most 10 minutes
 * @param batchSequences samples of a step, in place of {@code admission.batch_sequences} and
 *     {@code topology.batch.sequences}; 0 leaves these as they are
 * @param seconds the budget in wall-clock; 0 for none
 * @param tokens the budget in tokens that are trained on; 0 for none. A run ends with the first budget that is used up, and
 *     at least one is given
 * @param reward the mean reward of which the report says when it was reached, in (0, 1]
 * @param overSteps steps over which that mean, the first and the last reward of a run are taken, at least 1
 * @param limitSeconds longest wait for a run to use up its budget, its start included, at least 10
 * @param brokerHeapMb heap of the broker that is started where none is given, at least 256
 * @param seed of what is simulated
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

    /** Whether a run has used up its budget by now, so many seconds and tokens after its first step. */
    public boolean isUsedUp(double afterSeconds, long trainedTokens) {
        return seconds > 0 && afterSeconds >= seconds || tokens > 0 && trainedTokens >= tokens;
    }

    /** Environments and steps that take no time of their own; 30 seconds. */
    public static ClosedPlan defaults() {
        return new ClosedPlan(Distribution.fixed(0), Distribution.fixed(0), 0, 30, 0, 0.9, 10, 300, 512, 1);
    }
}
