/**
 * What is inconsistent on a run's log, which ways out there are, what each costs, and going one of them.
 *
 * <p>What the log says about itself is compared: the claim with the cluster, the chain of manifests with the training log, both with
 * the batches, and committed offsets with where the topics begin and end. Looking writes nothing.
 */
@NullMarked
package dev.millrace.learner.repair;

import org.jspecify.annotations.NullMarked;
