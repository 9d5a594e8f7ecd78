/** What a workload file says, as records that cannot be contradictory. */
package dev.millrace.workloads.workload;
