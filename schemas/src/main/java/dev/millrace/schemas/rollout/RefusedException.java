package dev.millrace.schemas.rollout;

/**
 * A record is refused; the {@link Refusal} says why. A checked exception, so that callers send the record to the dead
 * letters; without a stack trace, because the cause is a record and not the code.
 */
public final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;

    private final transient Refusal refusal;

    public RefusedException(Refusal refusal) {
        super(refusal.message(), null, false, false);
        this.refusal = refusal;
    }

    public RefusedException(RefusalReason reason, String field, String message) {
        this(Refusal.of(reason, field, message));
    }

    public Refusal refusal() {
        return refusal;
    }
}
