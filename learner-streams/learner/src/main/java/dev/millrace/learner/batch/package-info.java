/**
 * Input of the learner: batches in sequence, their trajectories, and both combined into one training batch.
 *
 * <p>This package validates batches and trajectories against each other once; the training step only does mathematics.
 */
@NullMarked
package dev.millrace.learner.batch;

import org.jspecify.annotations.NullMarked;
