package dev.millrace.workloads.closed;

import java.util.List;
import java.util.Map;

/**
 * Runs that differ in how far ahead they sample, and in nothing else.
 *
 * @param settings that they share
 * @param runs the synchronous one first
 */
public record ClosedCurve(Map<String, String> settings, List<ClosedRun> runs) {}
