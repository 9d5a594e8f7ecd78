package dev.millrace.policy.session;

/** ONNX Runtime refused or failed; the message says during what. */
public final class InferenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    InferenceException(String message, Throwable cause) {
        super(message, cause);
    }
}
