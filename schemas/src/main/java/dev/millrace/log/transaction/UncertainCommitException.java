package dev.millrace.log.transaction;

import org.apache.kafka.common.KafkaException;

/**
 * A transaction was to be committed, and nobody can say whether it is: wholly or not at all. After {@link
 * TransactionalWriter#fenceOthers()} the log says so.
 */
public final class UncertainCommitException extends KafkaException {
    private static final long serialVersionUID = 1L;

    /** With more to say about what was to be committed. */
    public UncertainCommitException(String message, UncertainCommitException cause) {
        super(message, cause);
    }

    UncertainCommitException(RuntimeException cause) {
        super("the broker did not say whether a transaction is committed: " + cause.getMessage(), cause);
    }
}
