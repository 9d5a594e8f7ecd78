/** A whole load test: the baseline, then every point, and what they say together. */
package dev.millrace.workloads.sweep;
