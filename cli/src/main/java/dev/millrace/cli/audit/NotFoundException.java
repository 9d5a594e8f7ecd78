package dev.millrace.cli.audit;

/** What was asked about is not there; the message is a sentence for the user with the nearest that is. */
public final class NotFoundException extends RuntimeException {
    /** Exit status if the subject is not found. */
    public static final int EXIT_CODE = 5;

    private static final long serialVersionUID = 1L;

    public NotFoundException(String message) {
        super(message);
    }
}
