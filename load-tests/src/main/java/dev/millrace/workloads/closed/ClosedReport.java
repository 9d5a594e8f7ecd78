package dev.millrace.workloads.closed;

import dev.millrace.report.ReportOrigin;
import java.util.List;

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
}
