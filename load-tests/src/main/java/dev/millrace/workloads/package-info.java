/** Load on a run by a workload file: open and closed loops, the search for a knee, and their reports. */
@NullMarked
package dev.millrace.workloads;

import org.jspecify.annotations.NullMarked;
