package dev.millrace.weights;

/**
 * A version on the log contradicts its manifest: a hash differs, a chunk is missing or out of place, or the tensors are
 * those of another decoder. It must not be used, and no other copy of it exists.
 */
public final class CorruptVersionException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public CorruptVersionException(String sentence) {
        super(sentence);
    }
}
