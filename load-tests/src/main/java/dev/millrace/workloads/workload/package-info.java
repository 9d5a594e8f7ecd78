/** What a workload file says, as records that cannot be contradictory. */
@NullMarked
package dev.millrace.workloads.workload;

import org.jspecify.annotations.NullMarked;
