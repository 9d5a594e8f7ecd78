package dev.millrace.workloads.topology;

/** A load test cannot continue; the message is for the user. */
public final class LoadException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public LoadException(String message) {
        super(message);
    }

    public LoadException(String message, Throwable cause) {
        super(message, cause);
    }
}
