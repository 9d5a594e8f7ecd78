package dev.millrace.workloads;

import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Sample;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Points that differ in their rate alone. */
public record Curve(Map<String, String> settings, Baseline baseline, List<PointResult> points, Knee knee) {
    /** What was achieved at each offered rate, ascending. */
    public SortedMap<Double, Sample> achieved() {
        Map<Double, List<Double>> byRate = points.stream()
                .collect(Collectors.groupingBy(
                        p -> p.rates().offered(),
                        Collectors.mapping(p -> p.rates().achieved(), Collectors.toList())));
        SortedMap<Double, Sample> achieved = new TreeMap<>();
        byRate.forEach((rate, times) -> achieved.put(rate, Sample.of(times)));
        return achieved;
    }

    public String label() {
        return SettingsLabel.of(settings);
    }

    /** Results of a load test. */
    public record LoadReport(int format, String name, ReportOrigin origin, String workload, List<Curve> curves) {
        public static final int FORMAT = 1;
    }
}
