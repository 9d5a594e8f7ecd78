/** Measures replays beside the live topology over the same records, on a broker in a process of its own. */
@NullMarked
package dev.millrace.workloads.replay;

import org.jspecify.annotations.NullMarked;
