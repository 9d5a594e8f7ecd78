/**
 * From a training batch to changed weights: objective, gradient, clipping, AdamW. No Kafka.
 *
 * <p>Given the same weights, optimiser state, batch and configuration the same bits come out, on the same kind of
 * machine. What decides the bits, and is therefore fixed by the batch and the configuration alone:
 * <ol>
 *   <li>which members are trained on, and in which order: the batch's;
 *   <li>how they are cut into minibatches: into stretches of equal length in that order;
 *   <li>how a minibatch is cut into shards: member i goes to shard {@code i mod shards}. Each shard adds up its own
 *       gradient in micro-batches of a fixed order, and the shards' gradients are added in the order of the shards. The
 *       number of shards is thus part of what decides the last bits; whether they ran at the same time is not.
 * </ol>
 */
@NullMarked
package dev.millrace.learner.step;

import org.jspecify.annotations.NullMarked;
