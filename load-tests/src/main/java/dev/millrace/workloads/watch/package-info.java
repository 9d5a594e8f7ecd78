/** Looking at a run from outside: what has become visible on a topic, and how much is on the broker's disk. */
@NullMarked
package dev.millrace.workloads.watch;

import org.jspecify.annotations.NullMarked;
