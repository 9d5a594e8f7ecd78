package dev.millrace.workloads;

import java.util.List;
import java.util.Map;

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
}
