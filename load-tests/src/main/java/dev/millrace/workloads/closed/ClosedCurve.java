package dev.millrace.workloads.closed;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Runs that differ in how far ahead they sample, and in nothing else.
 *
 * @param settings that they share
 * @param plain the loop without a log; null where it was not measured
 * @param runs the synchronous one first
 */
public record ClosedCurve(
        Map<String, String> settings, @Nullable ClosedRun plain, List<ClosedRun> runs) {}
