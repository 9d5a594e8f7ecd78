package dev.millrace.replay.archive;

/** A recorded run cannot be read or is inconsistent; the message says why and what to do. */
public final class ArchiveException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public ArchiveException(String message) {
        super(message);
    }

    public ArchiveException(String message, Throwable cause) {
        super(message, cause);
    }
}
