package dev.millrace.workloads;

import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;

/**
 * What came of one point.
 *
 * @param settings what the sweep set for it, by key
 * @param offered rollouts per second by the schedule
 * @param achieved rollouts per second that reached a batch
 * @param tokensPerSecond response tokens of these
 * @param megabytesPerSecond keys and values of rollouts and scores, before compression, of these
 * @param ofBaseline {@code megabytesPerSecond} over that of the raw copy
 * @param publishDelay from the intended time to the hand-over to the producer, ms
 * @param publishLatency from the intended time to the acknowledgement, ms
 * @param endToEnd from the rollout's intended time to its batch being visible, ms
 * @param added from rollout and score being on the log to the batch being visible, ms
 * @param ess median of the batches' ESS ratio
 * @param trainedShare tokens that reach a gradient, of those in batches
 * @param stalenessMean versions behind at the step that a batch is expected for, mean over batches
 * @param staleShare rollouts that left as stale, of these and those that reached a batch
 * @param learnerBusy share of the time that the learner was busy with batches; 0 where there is none
 * @param processorLoad of the whole machine, 0 to 1
 * @param ownMicros what making one record took the load generator, mean; time, not processor time
 * @param limit what kept it from achieving more
 * @param drainSeconds until the backlog was in batches; -1 where there was none, or it was not when the load ended
 * @param backlogLeft rollouts of the backlog that were in no batch when the load ended: not reached, or left out as too stale
 * @param recoverySeconds after a kill until no more records were behind than before; -1 where nothing was killed, or it was
 *     not so when the load ended
 * @param gapSeconds longest time without a batch after a kill, up to the end of the load; -1 where nothing was killed
 * @param lags over time
 */
public record PointResult(
        Map<String, String> settings,
        double offered,
        double achieved,
        double tokensPerSecond,
        double megabytesPerSecond,
        double ofBaseline,
        Latency publishDelay,
        Latency publishLatency,
        Latency endToEnd,
        Latency added,
        double ess,
        double trainedShare,
        double stalenessMean,
        double staleShare,
        double learnerBusy,
        double processorLoad,
        double ownMicros,
        Limit limit,
        double drainSeconds,
        long backlogLeft,
        double recoverySeconds,
        double gapSeconds,
        List<LagSample> lags) {

    /** How a point is called in tables. */
    public String label() {
        return SettingsLabel.of(settings);
    }

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
            return seconds.values().stream()
                    .mapToDouble(Double::doubleValue)
                    .max()
                    .orElse(0);
        }
    }

    /** What kept a point from achieving more. */
    public enum Limit {
        /** Nothing: it achieved what was offered. */
        LOAD("the load"),
        /** The machine had no processor time left. */
        PROCESSORS("processors"),
        /** Records were published late: the broker, or the way to it, did not take them. */
        PUBLISHING("the broker's intake"),
        /** Rollouts left as stale instead of reaching a batch. */
        STALENESS("staleness limit"),
        /** The learner was busy all the time, and the topology may be only so far ahead of it. */
        LEARNER("the learner"),
        /** None of these: the topology's threads, waiting for commits included. */
        TOPOLOGY("topology threads and commits");

        private static final double BUSY = 0.9;
        private static final double LATE_MS = 1000;
        private static final double MOST_STALE = 0.01;

        private final String words;

        Limit(String words) {
            this.words = words;
        }

        /** For people. */
        public String words() {
            return words;
        }

        /**
         * Decides.
         *
         * @param followed whether what was offered was achieved
         * @param staleShare rollouts that left as stale, of these and those in batches, 0 to 1; above 0.01 it is the limit even where the
         *     rest was followed
         * @param learnerBusy share of the time, 0 to 1; 0 where the topology does not wait for a learner
         * @param processorLoad of the whole machine, 0 to 1
         * @param publishDelayP99Ms how late the generators were
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

    /** Of a histogram of nanoseconds, in milliseconds; all 0 where nothing was recorded. */
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
