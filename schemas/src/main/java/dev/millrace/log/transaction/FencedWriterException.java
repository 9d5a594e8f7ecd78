package dev.millrace.log.transaction;

import org.apache.kafka.common.KafkaException;

/**
 * Somebody else writes under the same transactional id, or the broker gave a transaction up that was open for too long: this
 * writer can write nothing any more.
 */
public final class FencedWriterException extends KafkaException {
    private static final long serialVersionUID = 1L;

    FencedWriterException(Throwable cause) {
        super(cause.getMessage(), cause);
    }
}
