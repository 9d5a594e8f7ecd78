package dev.millrace.audit.trace;

/**
 * A dead letter that was found.
 *
 * @param newOffset where its record lies since it was redriven; -1 if it was not
 */
public record FoundDeadLetter(DeadLetter letter, long newOffset) {}
