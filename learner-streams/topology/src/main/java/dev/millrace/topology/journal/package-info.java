/**
 * What a task of the topology saw, carried by the records that it makes, so that a replay can decide again.
 *
 * <p>A task's decisions follow from its settings, the records of its inputs, the order in which it took them, how much
 * time passed while nothing came, and when it began anew on its stores. The first two are elsewhere on the log or known;
 * the rest is here.
 */
@NullMarked
package dev.millrace.topology.journal;

import org.jspecify.annotations.NullMarked;
