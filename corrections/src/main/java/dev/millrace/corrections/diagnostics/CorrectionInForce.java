package dev.millrace.corrections.diagnostics;

/** How much is being corrected already; the rungs of the escalation. */
public enum CorrectionInForce {
    /** Nothing, or weights alone. */
    NONE,
    /** Rejection. */
    REJECTION,
    /** Rejection, and weights on what is left. */
    REJECTION_AND_WEIGHTS;

    /** The next rung: rejection, then weights too, then {@code systems}. */
    Fix next(Fix systems) {
        return switch (this) {
            case NONE -> Fix.REJECT;
            case REJECTION -> Fix.REJECT_AND_WEIGH;
            case REJECTION_AND_WEIGHTS -> systems;
        };
    }
}
