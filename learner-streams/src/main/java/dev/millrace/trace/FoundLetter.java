package dev.millrace.trace;

import dev.millrace.deadletters.Letter;

/**
 * A dead letter that was found.
 *
 * @param newOffset where its record lies since it was put back; -1 if it was not
 */
public record FoundLetter(Letter letter, long newOffset) {}
