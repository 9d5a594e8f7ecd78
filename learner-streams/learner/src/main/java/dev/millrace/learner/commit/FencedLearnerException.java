package dev.millrace.learner.commit;

/** Another learner of the same run has taken over; this one can write nothing any more and stops. */
public final class FencedLearnerException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    FencedLearnerException(String transactionalId, long version, Throwable cause) {
        super(
                "fenced: another learner has taken over the transactional id " + transactionalId + ", so version "
                        + version
                        + " was not published by this one, and nothing will be any more. One learner trains a run; if no other was"
                        + " started, a transaction was open for longer than transaction.timeout.ms",
                cause);
    }
}
