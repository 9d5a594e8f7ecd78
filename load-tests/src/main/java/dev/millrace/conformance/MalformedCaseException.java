package dev.millrace.conformance;

/** A case not in the golden format, or of an unknown family; fails the run. */
public final class MalformedCaseException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public MalformedCaseException(String message) {
        super(message);
    }
}
