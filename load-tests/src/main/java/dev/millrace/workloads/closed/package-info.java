/**
 * The closed loop: real generators, scorer, topology and learner, whose environments and steps take as long as is simulated,
 * once synchronously and then asynchronously with the same budget.
 *
 * <p>Here are the plan, the two decorators that take time, and what a measurement comes to. What runs the roles is the
 * command line, which alone knows all of them.
 */
@NullMarked
package dev.millrace.workloads.closed;

import org.jspecify.annotations.NullMarked;
