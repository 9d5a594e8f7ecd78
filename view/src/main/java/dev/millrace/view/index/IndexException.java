package dev.millrace.view.index;

/** The index could not be read or written. It holds nothing that the topics do not: removing its folder makes a new one. */
public final class IndexException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    IndexException(String message, Throwable cause) {
        super(message, cause);
    }
}
