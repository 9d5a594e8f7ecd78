/**
 * The topology against a copy of the same bytes, and against its goals: throughput, bytes written, added latency,
 * restart, memory.
 */
@NullMarked
package dev.millrace.workloads.topology;

import org.jspecify.annotations.NullMarked;
