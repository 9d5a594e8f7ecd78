/**
 * One invocation of training: starts what a run needs in order, watches it, and ends it in order.
 *
 * <p>Everything of a run is in its folder, and one process at a time holds it. The same folder again continues with the run,
 * under settings that may not contradict its beginning.
 */
@NullMarked
package dev.millrace.runtime.train;

import org.jspecify.annotations.NullMarked;
