package dev.millrace.workloads;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;

/**
 * Results of one point. Shares are in [0, 1]; -1 means not measured.
 *
 * @param batches made meanwhile
 */
public record PointResult(
        Map<String, String> settings,
        @JsonUnwrapped Rates rates,
        @JsonUnwrapped Latencies latencies,
        @JsonUnwrapped Batches batches,
        @JsonUnwrapped Use use,
        @JsonUnwrapped Recovery recovery,
        List<LagSample> lags) {

    /**
     * Rates of a point.
     *
     * @param offered rollouts per second by the schedule
     * @param achieved rollouts per second that reached a batch
     * @param megabytesPerSecond keys and values of their rollouts and scores, uncompressed
     * @param ofBaseline over the raw copy
     */
    public record Rates(
            double offered, double achieved, double tokensPerSecond, double megabytesPerSecond, double ofBaseline) {}

    /**
     * Latencies of a point.
     *
     * @param publishDelay intended time to producer, ms
     * @param publishLatency intended time to acknowledgement, ms
     * @param endToEnd intended time to visible batch, ms
     * @param added rollout and score on the log to visible batch, ms
     */
    public record Latencies(Latency publishDelay, Latency publishLatency, Latency endToEnd, Latency added) {}

    /**
     * Contents of the batches.
     *
     * @param ess median of the batches' ESS ratio
     * @param trainedShare tokens with a gradient, of those in batches
     * @param stalenessMean versions behind at the expected step, mean over batches
     * @param staleShare stale rollouts, of these and those that reached a batch
     */
    public record Batches(double ess, double trainedShare, double stalenessMean, double staleShare) {}

    /**
     * How busy the machine was.
     *
     * @param learnerBusy share of time; 0 without a learner
     * @param ownMicros mean time of the generator per record
     */
    public record Use(double learnerBusy, double processorLoad, double ownMicros, Limit limit) {}

    /**
     * Times of a recovery.
     *
     * @param drainSeconds until the backlog was in batches
     * @param backlogLeft rollouts of the backlog in no batch at the end
     * @param recoverySeconds from a kill until lag is back to its level before
     * @param gapSeconds longest time without a batch after a kill
     */
    public record Recovery(double drainSeconds, long backlogLeft, double recoverySeconds, double gapSeconds) {}

    public String label() {
        return SettingsLabel.of(settings);
    }

    /**
     * Lags at one moment.
     *
     * @param records behind, by topic-partition
     * @param seconds behind, by topic-partition
     * @param versionsInFlight versions between sampling and scoring, mean over the newest batch
     * @param versionsInQueue versions between scoring and assembly, likewise
     * @param batchesAhead not taken by the learner yet
     * @param rolloutsPerSecond into batches since the sample before
     */
    public record LagSample(
            double atSeconds,
            Map<String, Long> records,
            Map<String, Double> seconds,
            double versionsInFlight,
            double versionsInQueue,
            long batchesAhead,
            double rolloutsPerSecond) {

        public long allRecords() {
            return records.values().stream().mapToLong(Long::longValue).sum();
        }

        public double mostSeconds() {
            return seconds.values().stream()
                    .mapToDouble(Double::doubleValue)
                    .max()
                    .orElse(0);
        }
    }

    /** What kept a point from achieving more. */
    public enum Limit {
        LOAD("the load"),
        PROCESSORS("processors"),
        /** The broker did not take records in time. */
        PUBLISHING("the broker's intake"),
        STALENESS("staleness limit"),
        /** The learner was busy all the time, so the topology had to wait. */
        LEARNER("the learner"),
        /** None of these: topology threads, including their waits for commits. */
        TOPOLOGY("topology threads and commits");

        private static final double BUSY = 0.9;
        private static final double LATE_MS = 1000;
        private static final double MOST_STALE = 0.01;

        private final String words;

        Limit(String words) {
            this.words = words;
        }

        public String words() {
            return words;
        }

        /**
         * @param staleShare stale rollouts, of these and those in batches; above 0.01 it is the limit
         * @param learnerBusy 0 if the topology does not wait for a learner
         */
        static Limit of(
                boolean followed,
                double staleShare,
                double learnerBusy,
                double processorLoad,
                double publishDelayP99Ms) {
            if (staleShare > MOST_STALE) {
                return STALENESS;
            }
            if (followed) {
                return LOAD;
            }
            if (learnerBusy >= BUSY) {
                return LEARNER;
            }
            if (processorLoad >= BUSY) {
                return PROCESSORS;
            }
            return publishDelayP99Ms > LATE_MS ? PUBLISHING : TOPOLOGY;
        }
    }

    /** Milliseconds from a histogram of nanoseconds; all 0 without values. */
    public record Latency(long count, double p50, double p90, double p99, double p999, double max) {
        static Latency of(Histogram nanos) {
            return new Latency(
                    nanos.getTotalCount(),
                    nanos.getValueAtPercentile(50) / 1e6,
                    nanos.getValueAtPercentile(90) / 1e6,
                    nanos.getValueAtPercentile(99) / 1e6,
                    nanos.getValueAtPercentile(99.9) / 1e6,
                    nanos.getMaxValue() / 1e6);
        }
    }
}
