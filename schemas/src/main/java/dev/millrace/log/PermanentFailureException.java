package dev.millrace.log;

import org.apache.kafka.common.KafkaException;
import org.jspecify.annotations.Nullable;

/** A failure that comes of Kafka and does not pass by waiting. */
public class PermanentFailureException extends KafkaException {
    private static final long serialVersionUID = 1L;

    protected PermanentFailureException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
