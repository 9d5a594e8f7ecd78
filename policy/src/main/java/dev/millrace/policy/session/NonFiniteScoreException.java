package dev.millrace.policy.session;

/** A log-prob or entropy came out as NaN or infinite: the weights, or a gradient step before, are broken. */
public final class NonFiniteScoreException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int sequence;
    private final int token;

    NonFiniteScoreException(int sequence, int token, String message) {
        super(message);
        this.sequence = sequence;
        this.token = token;
    }

    /** Index of the sequence in its batch; the slot, where slots were decoded. */
    public int sequence() {
        return sequence;
    }

    /** Position of the token in the sequence, prompt included. */
    public int token() {
        return token;
    }
}
