package dev.millrace.audit.ledger;

/**
 * What has waited longest in one stage.
 *
 * @param stage for a sentence
 * @param rolloutId of the rollout
 * @param sinceMs when its record was written, Unix milliseconds
 */
public record OldestPending(String stage, String rolloutId, long sinceMs) {}
