package dev.millrace.cli.audit;

/** A requested object does not exist; the message is a sentence that names the nearest one. */
public final class NotFoundException extends RuntimeException {
    /** Exit status if the subject is not found. */
    public static final int EXIT_CODE = 5;

    private static final long serialVersionUID = 1L;

    public NotFoundException(String message) {
        super(message);
    }
}
