package dev.millrace.policy.ort;

/** ONNX Runtime refused or failed; the message is the runtime's. */
public final class OrtException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    OrtException(String message) {
        super(message);
    }
}
