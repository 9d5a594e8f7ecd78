/**
 * Rollouts, scores and versions that nobody sampled: real records, accepted by every check, with lengths, staleness and
 * drift drawn from stated distributions.
 *
 * <p>Everything about record {@code i} follows from the seed and {@code i}, so two runs publish the same records.
 */
@NullMarked
package dev.millrace.workloads.synthetic;

import org.jspecify.annotations.NullMarked;
