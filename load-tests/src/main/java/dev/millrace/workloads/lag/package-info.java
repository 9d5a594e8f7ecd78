/** The three lags of a run: records and seconds behind on every partition, and policy versions behind. */
@NullMarked
package dev.millrace.workloads.lag;

import org.jspecify.annotations.NullMarked;
