/** The three lags of a run: records and seconds behind on every partition, and policy versions behind. */
package dev.millrace.workloads.lag;
