/**
 * Adds up what became of every rollout, from the topics alone.
 *
 * <p>The identity, per run: generated = trained + masked + dropped (by reason) + dead-lettered + in flight.
 * Each rollout record on the log is found in exactly one of these; one that is found in two, or a decision about
 * a rollout that is not on the log, is a contradiction and is reported as such.
 */
@NullMarked
package dev.millrace.audit.ledger;

import org.jspecify.annotations.NullMarked;
