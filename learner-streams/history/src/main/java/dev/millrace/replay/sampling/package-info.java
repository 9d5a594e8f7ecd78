/** Policies sampled, scored and judged without a log, for whoever tries weights that no run serves. */
@NullMarked
package dev.millrace.replay.sampling;

import org.jspecify.annotations.NullMarked;
