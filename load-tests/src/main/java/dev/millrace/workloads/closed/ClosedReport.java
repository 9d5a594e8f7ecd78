package dev.millrace.workloads.closed;

import dev.millrace.report.ReportOrigin;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Everything that a closed loop found.
 *
 * @param format of this record in a file
 * @param kind tells it from other reports in a file
 * @param name of the workload
 * @param workload as it was resolved, as YAML
 */
public record ClosedReport(
        int format, String kind, String name, ReportOrigin origin, String workload, List<ClosedCurve> curves) {
    /** What is written now. */
    public static final int FORMAT = 1;
    /** The value of {@code kind}. */
    public static final String KIND = "closed";

    /**
     * Runs that differ in how far ahead they sample, and in nothing else.
     *
     * @param settings that they share
     * @param plain the loop without a log; null where it was not measured
     * @param runs the synchronous one first
     */
    public record ClosedCurve(
            Map<String, String> settings, @Nullable ClosedRun plain, List<ClosedRun> runs) {}
}
