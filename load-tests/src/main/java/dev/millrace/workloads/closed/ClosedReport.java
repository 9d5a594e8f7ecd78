package dev.millrace.workloads.closed;

import dev.millrace.infra.broker.Durability;
import dev.millrace.report.ReportOrigin;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Results of a closed loop.
 *
 * @param durability asked of the broker; absent for SYSTEM
 */
public record ClosedReport(
        int format,
        String kind,
        String name,
        ReportOrigin origin,
        String workload,
        Durability durability,
        List<ClosedCurve> curves) {
    public static final int FORMAT = 1;
    public static final String KIND = "closed";

    public ClosedReport {
        durability = durability == null ? Durability.SYSTEM : durability;
    }

    /**
     * Runs that differ in eta alone.
     *
     * @param plain loop without a log; null if not measured
     * @param runs the synchronous one first
     */
    public record ClosedCurve(
            Map<String, String> settings, @Nullable ClosedRun plain, List<ClosedRun> runs) {}
}
