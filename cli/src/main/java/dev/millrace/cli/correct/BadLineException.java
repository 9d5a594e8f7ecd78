package dev.millrace.cli.correct;

/** A line that is not a sequence of the documented form; the message says what is wrong with it. */
final class BadLineException extends Exception {
    private static final long serialVersionUID = 1L;

    BadLineException(String message) {
        super(message);
    }
}
