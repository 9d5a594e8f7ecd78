package dev.millrace.log.scan;

import org.apache.kafka.common.KafkaException;

/** A partition did not give a record back in time. The record is not lost: stop, and try again. */
public final class RecordFetchException extends KafkaException {
    private static final long serialVersionUID = 1L;

    RecordFetchException(String message) {
        super(message);
    }
}
