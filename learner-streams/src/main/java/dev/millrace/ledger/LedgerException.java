package dev.millrace.ledger;

/** The topics could not be read to their end. */
public final class LedgerException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public LedgerException(String message) {
        super(message);
    }
}
