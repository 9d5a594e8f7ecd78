package dev.millrace.topology.ingress;

import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.serde.MalformedRecordException;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;

/**
 * Bytes to a record, with bytes that are none as a refusal.
 *
 * @param <T> what the topic holds
 */
final class RecordDecoding<T> {
    private final String topic;
    private final Deserializer<T> deserializer;

    RecordDecoding(String topic, Deserializer<T> deserializer) {
        this.topic = topic;
        this.deserializer = deserializer;
    }

    /**
     * @param value as it came, may be null
     * @throws RefusedException if it is no such record
     */
    T decode(byte @Nullable [] value) throws RefusedException {
        if (value == null) {
            throw new RefusedException(RefusalReason.UNREADABLE, "", "the record has no value");
        }
        try {
            return deserializer.deserialize(topic, value);
        } catch (MalformedRecordException e) {
            throw new RefusedException(RefusalReason.UNREADABLE, "", String.valueOf(e.getMessage()));
        }
    }
}
