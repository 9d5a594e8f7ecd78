package dev.millrace.log.transaction;

import dev.millrace.log.LastingFailureException;

/** A newer process owns the transactional id; the receiver must end. */
public final class TakenOverException extends LastingFailureException {
    private static final long serialVersionUID = 1L;

    TakenOverException(String transactionalId, Incarnation own, String owner) {
        super(
                transactionalId + ": somebody newer has taken over, "
                        + (owner.isEmpty()
                                ? "a client of another kind that does not say who it is"
                                : owner.substring(owner.indexOf(' ') + 1))
                        + "; this one, " + own.who()
                        + ", ends. There is one at a time: give each its own id, or run only one",
                null);
    }
}
