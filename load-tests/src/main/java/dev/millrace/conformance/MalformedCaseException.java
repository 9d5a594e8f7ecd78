package dev.millrace.conformance;

/**
 * A case that is not in the golden format, or asks for something no family knows; unlike a refusal it fails the run.
 */
public final class MalformedCaseException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public MalformedCaseException(String message) {
        super(message);
    }
}
