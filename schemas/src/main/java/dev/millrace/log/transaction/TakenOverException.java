package dev.millrace.log.transaction;

import dev.millrace.log.PermanentFailureException;

/** A newer process owns the transactional id; the receiver must end. */
public final class TakenOverException extends PermanentFailureException {
    private static final long serialVersionUID = 1L;

    TakenOverException(String transactionalId, Incarnation own, String owner) {
        super(
                transactionalId + ": fenced by "
                        + (owner.isEmpty()
                                ? "a client that does not identify itself"
                                : owner.substring(owner.indexOf(' ') + 1))
                        + "; this one, " + own.who()
                        + ", stops. Only one may run at a time: give each its own id, or run only one",
                null);
    }
}
