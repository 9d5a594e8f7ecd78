package dev.millrace.runtime.evaluation;

/** No response to a held-out prompt could be verified, so a version has no evaluation. */
public final class UnjudgedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnjudgedException(String message) {
        super(message);
    }
}
