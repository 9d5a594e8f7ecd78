package dev.millrace.workloads;

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
}
