/** Policies sampled, scored and judged without a log, for whoever tries weights that no run serves. */
package dev.millrace.replay.sampling;
