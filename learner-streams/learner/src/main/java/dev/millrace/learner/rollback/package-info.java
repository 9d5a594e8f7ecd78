/**
 * Going back to an older version: a new epoch of the run, whose first version is the old one again.
 *
 * <p>Two steps, each whole or not at all: the claim that begins the epoch, and the transaction that publishes its first version. Between the two the run has an epoch without a version; whoever comes next,
 * the same command or a learner that starts, completes it.
 */
@NullMarked
package dev.millrace.learner.rollback;

import org.jspecify.annotations.NullMarked;
