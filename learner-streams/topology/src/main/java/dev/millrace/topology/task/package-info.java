/**
 * Tasks of the topology, apart from the stream engine that runs them.
 *
 * <p>A {@link dev.millrace.topology.task.DecisionTask} decides; live, the engine's processor here feeds it and writes down
 * what it saw; a replay feeds the same task what was written down. Wall clock and engine stay on this side of it.
 */
@NullMarked
package dev.millrace.topology.task;

import org.jspecify.annotations.NullMarked;
