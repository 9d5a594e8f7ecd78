package dev.millrace.workloads.sweep;

import dev.millrace.workloads.knee.Knee;
import dev.millrace.workloads.point.Baseline;
import dev.millrace.workloads.point.PointResult;
import java.util.List;
import java.util.Map;

/**
 * Points that differ in their rate alone.
 *
 * @param settings that they share
 * @param knee rollouts per second
 */
public record Curve(Map<String, String> settings, Baseline baseline, List<PointResult> points, Knee knee) {
    /** How a curve is called in tables and pictures. */
    public String label() {
        return settings.isEmpty()
                ? "as it is"
                : String.join(
                        ", ",
                        settings.entrySet().stream()
                                .map(e -> e.getKey().substring(e.getKey().lastIndexOf('.') + 1) + " " + e.getValue())
                                .toList());
    }
}
