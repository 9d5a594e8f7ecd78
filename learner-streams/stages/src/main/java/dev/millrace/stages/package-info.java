/**
 * Which corrections run, on which log-probs, and what they report; the mathematics is in {@code dev.millrace.corrections}.
 *
 * <p>The topology decides by them when it assembles a batch, the learner when it starts a step: one configuration, and the
 * same classes fed with log-probs of another version. No Kafka.
 *
 * <p>Every configured stage reports at every trajectory or batch, also when it changed nothing.
 */
@NullMarked
package dev.millrace.stages;

import org.jspecify.annotations.NullMarked;
