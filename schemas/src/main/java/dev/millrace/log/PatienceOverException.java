package dev.millrace.log;

/** Something was tried again and again, for as long as {@code run.patience_seconds} says. The cause is the last failure. */
public final class PatienceOverException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    PatienceOverException(String message, Throwable cause) {
        super(message, cause);
    }
}
