package dev.millrace.learner.step;

/** The current policy's log-prob or entropy of a member's token is NaN or infinite. */
final class NonFiniteMemberException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int member;

    NonFiniteMemberException(int member, String message, Throwable cause) {
        super(message, cause);
        this.member = member;
    }

    /** Index in the batch. */
    int member() {
        return member;
    }
}
