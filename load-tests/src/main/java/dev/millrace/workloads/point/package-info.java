/** One point of a load test: a workload is run, and what came of it is a record. */
@NullMarked
package dev.millrace.workloads.point;

import org.jspecify.annotations.NullMarked;
