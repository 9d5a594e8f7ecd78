package dev.millrace.replay.archive;

/** A recorded run cannot be read, or is not what it says; the message says why and what helps. */
public final class ArchiveException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public ArchiveException(String message) {
        super(message);
    }

    public ArchiveException(String message, Throwable cause) {
        super(message, cause);
    }
}
