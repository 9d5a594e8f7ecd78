package dev.millrace.log.scan;

/** The topics could not be read to their end. */
public final class ScanException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public ScanException(String message) {
        super(message);
    }
}
