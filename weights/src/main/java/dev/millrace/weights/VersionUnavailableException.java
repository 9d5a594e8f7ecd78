package dev.millrace.weights;

/**
 * A version is unavailable: it is not published yet, no longer kept, or its chunks are gone from the log.
 *
 * <p>The log itself is intact. A caller that can continue without this version does so, and reports it.
 */
public final class VersionUnavailableException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public VersionUnavailableException(String sentence) {
        super(sentence);
    }

    public VersionUnavailableException(String sentence, Throwable cause) {
        super(sentence, cause);
    }
}
