/** Rollouts that leave without reaching a batch: the closed list of reasons, and the record that says so. */
@NullMarked
package dev.millrace.topology.outcome;

import org.jspecify.annotations.NullMarked;
