/**
 * Which corrections run, on which log-probs, and what they report; the mathematics is in {@code dev.millrace.corrections}.
 *
 * <p>Every configured stage reports at every trajectory or batch, also when it changed nothing.
 */
package dev.millrace.topology.correction;
