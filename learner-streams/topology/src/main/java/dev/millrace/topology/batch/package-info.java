/**
 * Gathers trajectories into groups and groups into batches, one task per policy.
 *
 * <p>A member is remembered by its place on the log and by sums; what it has one of per token is read again when memory is
 * full. What a batch is follows from the order of the task's inputs and from nothing else, so that a replay makes the same
 * batch. Every trajectory leaves once: in a batch, or as an outcome with its reason.
 */
@NullMarked
package dev.millrace.topology.batch;

import org.jspecify.annotations.NullMarked;
