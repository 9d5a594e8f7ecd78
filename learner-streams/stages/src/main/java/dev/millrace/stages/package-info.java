/**
 * The stages: which corrections run, on which log-probs, and their reports; the mathematics is in {@code
 * dev.millrace.corrections}.
 *
 * <p>The topology applies them when it assembles a batch, the learner when it starts a step: the same configuration and
 * classes over log-probs of different versions. No Kafka.
 *
 * <p>Every configured stage reports for every trajectory or batch, even if it changed nothing.
 */
@NullMarked
package dev.millrace.stages;

import org.jspecify.annotations.NullMarked;
