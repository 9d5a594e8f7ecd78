/**
 * Experiments: runs without Kafka in which one thing is varied and everything else is fixed, from random weights to the
 * table.
 *
 * <p>They use the product's own parts: sampling, environment, corrections, batches, objective, gradient and optimiser.
 * What they leave out is what depends on time: the log, the roles, and their overlap. A run is a function of its key and
 * settings, bit for bit on one kind of machine.
 */
@NullMarked
package dev.millrace.experiments;

import org.jspecify.annotations.NullMarked;
