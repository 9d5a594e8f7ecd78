/**
 * What comes in: batches in sequence, the trajectories they point at, and both put together as one training batch.
 *
 * <p>Everything that a batch or a trajectory claims is checked here, once, against each other; the step that follows
 * does mathematics only.
 */
@NullMarked
package dev.millrace.learner.batch;

import org.jspecify.annotations.NullMarked;
