/** Workload files: what is run, at which points, read and checked before anything starts. */
@NullMarked
package dev.millrace.workloads.file;

import org.jspecify.annotations.NullMarked;
