package dev.millrace.policy.huggingface;

/** A checkpoint that cannot be read as one of our decoders; the message names file, key or tensor. */
public final class CheckpointException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    CheckpointException(String message) {
        super(message);
    }

    CheckpointException(String message, Throwable cause) {
        super(message, cause);
    }
}
