package dev.millrace.corrections.staleness;

/**
 * The staleness that a limit saw.
 *
 * @param oldest largest staleness of a trained token, in versions; 0 without one
 * @param mean mean staleness over trained tokens, in versions; 0 without one
 */
public record StalenessSummary(long oldest, double mean) {}
