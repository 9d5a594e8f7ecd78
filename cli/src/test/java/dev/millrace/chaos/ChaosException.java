package dev.millrace.chaos;

/** A run under faults could not be set up, or could not be looked at. */
public final class ChaosException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public ChaosException(String message) {
        super(message);
    }

    public ChaosException(String message, Throwable cause) {
        super(message, cause);
    }
}
