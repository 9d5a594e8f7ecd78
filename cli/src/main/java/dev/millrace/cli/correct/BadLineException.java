package dev.millrace.cli.correct;

/** A line that is not a sequence of the documented form; the message has the error. */
public final class BadLineException extends Exception {
    private static final long serialVersionUID = 1L;

    public BadLineException(String message) {
        super(message);
    }
}
