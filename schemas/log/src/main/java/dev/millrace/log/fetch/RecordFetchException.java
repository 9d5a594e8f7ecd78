package dev.millrace.log.fetch;

/** A partition did not give a record back in time. The record is not lost: stop, and try again. */
public final class RecordFetchException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RecordFetchException(String message) {
        super(message);
    }
}
