package dev.millrace.workloads;

import java.util.Map;

/**
 * The lags at one moment.
 *
 * @param atSeconds since the load began
 * @param records behind, by topic-partition
 * @param seconds behind, by topic-partition
 * @param versionsInFlight versions between sampling and scoring, mean over the tokens of the newest batch
 * @param versionsInQueue versions between scoring and assembly, likewise
 * @param batchesAhead batches that the learner has not taken yet
 * @param rolloutsPerSecond that reached a batch since the sample before
 */
public record LagSample(
        double atSeconds,
        Map<String, Long> records,
        Map<String, Double> seconds,
        double versionsInFlight,
        double versionsInQueue,
        long batchesAhead,
        double rolloutsPerSecond) {

    /** Behind on all partitions together. */
    public long allRecords() {
        return records.values().stream().mapToLong(Long::longValue).sum();
    }

    /** Behind on the partition that is furthest behind. */
    public double mostSeconds() {
        return seconds.values().stream().mapToDouble(Double::doubleValue).max().orElse(0);
    }
}
