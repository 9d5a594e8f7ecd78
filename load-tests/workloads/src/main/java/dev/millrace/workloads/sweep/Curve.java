package dev.millrace.workloads.sweep;

import dev.millrace.workloads.knee.Knee;
import dev.millrace.workloads.point.Baseline;
import dev.millrace.workloads.point.PointResult;
import dev.millrace.workloads.report.SettingsLabel;
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
        return SettingsLabel.of(settings);
    }
}
