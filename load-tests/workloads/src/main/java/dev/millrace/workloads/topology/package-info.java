/**
 * The topology against a copy of the same bytes, and against its goals: throughput, bytes written, added latency,
 * restart, memory.
 */
package dev.millrace.workloads.topology;
