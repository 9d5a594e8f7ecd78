package dev.millrace.audit.trace;

import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A found record.
 *
 * @param timestampMs Unix milliseconds
 */
public record Found<T>(T value, String topic, int partition, long offset, long timestampMs) {
    static <T> Found<T> of(T value, ConsumerRecord<?, ?> record) {
        return new Found<>(value, record.topic(), record.partition(), record.offset(), record.timestamp());
    }

    public String place() {
        return topic + "-" + partition + "@" + offset;
    }

    /** True if the other record is equal. */
    boolean isCopiedBy(Found<T> other) {
        return !isAt(other.partition, other.offset) && value.equals(other.value);
    }

    public boolean isAt(int otherPartition, long otherOffset) {
        return partition == otherPartition && offset == otherOffset;
    }
}
