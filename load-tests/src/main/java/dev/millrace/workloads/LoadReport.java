package dev.millrace.workloads;

import dev.millrace.report.ReportOrigin;
import java.util.List;

/**
 * Everything that a load test found.
 *
 * @param format of this record in a file
 * @param name of the workload
 * @param workload as it was resolved, as YAML
 */
public record LoadReport(int format, String name, ReportOrigin origin, String workload, List<Curve> curves) {
    /** What is written now. */
    public static final int FORMAT = 1;
}
