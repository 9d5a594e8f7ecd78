package dev.millrace.learner.repair;

/** A run cannot be taken back as asked for; the message says what can be done instead. */
public final class RollbackException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RollbackException(String message) {
        super(message);
    }
}
