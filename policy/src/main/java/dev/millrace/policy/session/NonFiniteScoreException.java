package dev.millrace.policy.session;

/** A log-prob or entropy came out as NaN or infinite: the weights, or a gradient step before, are broken. */
public final class NonFiniteScoreException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    NonFiniteScoreException(String message) {
        super(message);
    }
}
