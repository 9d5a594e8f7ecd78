/**
 * One training invocation: starts a run's parts in order, watches them, and stops them in order.
 *
 * <p>Everything of a run is in its folder, held by one process at a time. A later invocation with the same folder
 * continues the run; its settings must not contradict the initial ones.
 */
@NullMarked
package dev.millrace.runtime.train;

import org.jspecify.annotations.NullMarked;
