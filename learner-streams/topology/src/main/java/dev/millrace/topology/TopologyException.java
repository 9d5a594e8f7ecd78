package dev.millrace.topology;

/** The topology could not start or had to stop; the message is a sentence for the user. */
public final class TopologyException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    TopologyException(String message) {
        super(message);
    }

    TopologyException(String message, Throwable cause) {
        super(message, cause);
    }
}
