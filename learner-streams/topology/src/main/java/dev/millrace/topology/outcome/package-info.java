/** Rollouts that leave without reaching a batch: the closed list of reasons, and the record that says so. */
package dev.millrace.topology.outcome;
