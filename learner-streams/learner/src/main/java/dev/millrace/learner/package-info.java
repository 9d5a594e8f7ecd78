/**
 * The learner: batches in, versions out, exactly once.
 *
 * <p>{@link dev.millrace.learner.Learner} is the role; {@code batch} reads and validates the batches, {@code step} is
 * the mathematics, {@link dev.millrace.learner.VersionCommitter} publishes the versions, and {@code repair} fixes an
 * inconsistent log.
 */
@NullMarked
package dev.millrace.learner;

import org.jspecify.annotations.NullMarked;
