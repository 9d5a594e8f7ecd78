/**
 * Load at a rate that does not care how the system feels: every rollout has a time at which it is to be published, fixed
 * before the first one is, and latencies count from that time. A system that stalls is charged for the stall with every
 * record that it kept waiting.
 */
@NullMarked
package dev.millrace.workloads.openloop;

import org.jspecify.annotations.NullMarked;
