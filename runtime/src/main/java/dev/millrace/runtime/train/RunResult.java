package dev.millrace.runtime.train;

import dev.millrace.runtime.report.RunSummary;
import java.nio.file.Path;

/**
 * Result of one training invocation.
 *
 * @param runId name of the run, which a folder and a log have in common
 * @param directory the run's folder, from which it can be resumed
 * @param summary all steps of the run with what they came to, as summary.json has it
 */
public record RunResult(String runId, Path directory, RunEnd end, RunSummary summary) {}
