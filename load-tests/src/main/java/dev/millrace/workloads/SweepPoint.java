package dev.millrace.workloads;

import java.util.Map;

/**
 * A workload with what the sweep sets for it.
 *
 * @param settings by key, in the order of the file; empty where nothing is swept
 */
public record SweepPoint(Map<String, String> settings, Workload workload) {}
