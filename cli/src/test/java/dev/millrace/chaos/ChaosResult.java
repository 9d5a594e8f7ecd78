package dev.millrace.chaos;

import com.fasterxml.jackson.annotation.JsonIgnore;
import dev.millrace.chaos.check.Check;
import dev.millrace.chaos.observe.Holdings;
import dev.millrace.chaos.process.Troupe;
import dev.millrace.report.ReportOrigin;
import java.util.List;

/**
 * What a run under faults showed.
 *
 * @param format of this record as JSON
 * @param seconds from the first possible fault to the last one's end
 * @param versions that were published
 * @param rollouts that are on the log
 * @param lost samples that were released and never came
 * @param duplicated rollouts that were written or trained on twice
 * @param trajectorySecondsLost work lost with generators, at most; see {@link
 *     dev.millrace.chaos.observe.LogWatch#secondsLost}
 * @param departures processes that ended though nobody had asked them to
 */
public record ChaosResult(
        int format,
        ReportOrigin origin,
        long seed,
        int brokers,
        double seconds,
        long versions,
        long rollouts,
        long lost,
        long duplicated,
        double trajectorySecondsLost,
        List<FaultOutcome> faults,
        List<Troupe.Departure> departures,
        List<Holdings.Change> holdings,
        List<Check> checks) {
    /** What is written now. */
    public static final int FORMAT = 1;

    public ChaosResult {
        faults = List.copyOf(faults);
        departures = List.copyOf(departures);
        holdings = List.copyOf(holdings);
        checks = List.copyOf(checks);
    }

    /** Whether every fault was survived, by every process, and every promise kept. */
    @JsonIgnore
    public boolean isHeld() {
        return faults.stream().allMatch(FaultOutcome::isSurvived)
                && checks.stream().allMatch(Check::isHeld)
                && departures.isEmpty()
                && lost == 0
                && duplicated == 0;
    }
}
