package dev.millrace.runtime.evaluation;

/** No response to a held-out prompt could be judged, so that there is nothing to say of a version. */
public final class UnjudgedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnjudgedException(String message) {
        super(message);
    }
}
