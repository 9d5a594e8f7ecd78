package dev.millrace.audit.trace;

import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A record that was found.
 *
 * @param timestampMs when it was written, Unix milliseconds
 * @param <T> what it is
 */
public record Found<T>(T value, String topic, int partition, long offset, long timestampMs) {
    static <T> Found<T> of(T value, ConsumerRecord<?, ?> record) {
        return new Found<>(value, record.topic(), record.partition(), record.offset(), record.timestamp());
    }

    /** Topic, partition and offset. */
    public String place() {
        return topic + "-" + partition + "@" + offset;
    }

    /** Whether another record says word for word the same. */
    boolean isCopiedBy(Found<T> other) {
        return !isAt(other.partition, other.offset) && value.equals(other.value);
    }

    /** Whether these coordinates name it. */
    public boolean isAt(int otherPartition, long otherOffset) {
        return partition == otherPartition && offset == otherOffset;
    }
}
