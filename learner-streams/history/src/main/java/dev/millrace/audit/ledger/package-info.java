/**
 * Accounts for every rollout from the topics alone.
 *
 * <p>The identity, per run: generated = trained + masked + dropped (by reason) + dead-lettered + in flight.
 * Each rollout record on the log is found in exactly one of these; a rollout with two outcomes, or a decision about a
 * rollout that is not on the log, is reported as a contradiction.
 */
@NullMarked
package dev.millrace.audit.ledger;

import org.jspecify.annotations.NullMarked;
