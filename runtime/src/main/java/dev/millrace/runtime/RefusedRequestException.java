package dev.millrace.runtime;

/** A command cannot do what was asked; the message is a sentence for the user and names the way out. */
public final class RefusedRequestException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public RefusedRequestException(String message) {
        super(message);
    }

    public RefusedRequestException(String message, Throwable cause) {
        super(message, cause);
    }
}
