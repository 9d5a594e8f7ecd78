package dev.millrace.workloads;

import dev.millrace.report.ReportOrigin;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * Points that differ in their rate alone.
 *
 * @param settings that they share
 * @param knee rollouts per second
 */
public record Curve(Map<String, String> settings, Baseline baseline, List<PointResult> points, Knee knee) {
    /** Every rate that was offered, in ascending order, and what was achieved each time. */
    public SortedMap<Double, Sample> achieved() {
        Map<Double, List<Double>> byRate = points.stream()
                .collect(Collectors.groupingBy(
                        PointResult::offered, Collectors.mapping(PointResult::achieved, Collectors.toList())));
        SortedMap<Double, Sample> achieved = new TreeMap<>();
        byRate.forEach((rate, times) -> achieved.put(rate, Sample.of(times)));
        return achieved;
    }

    /** How a curve is called in tables and pictures. */
    public String label() {
        return SettingsLabel.of(settings);
    }

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
}
