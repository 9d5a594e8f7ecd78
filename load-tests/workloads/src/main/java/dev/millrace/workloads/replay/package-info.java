/** Measures replays beside the live topology over the same records, on a broker in a process of its own. */
package dev.millrace.workloads.replay;
