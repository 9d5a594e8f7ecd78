package dev.millrace.policy.session;

/** A log-prob or entropy came out as NaN or infinite: the weights, or a gradient step before, are broken. */
public final class NonFiniteScoreException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int sequence;

    NonFiniteScoreException(int sequence, String message) {
        super(message);
        this.sequence = sequence;
    }

    /** Index of the sequence in its batch; the slot, where slots were decoded. */
    public int sequence() {
        return sequence;
    }
}
