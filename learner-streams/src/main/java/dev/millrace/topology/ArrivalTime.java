package dev.millrace.topology;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.streams.processor.TimestampExtractor;

/**
 * The record's own timestamp, or the partition's time so far where it has none: the engine's own extractor stops the
 * topology at such a record.
 */
public final class ArrivalTime implements TimestampExtractor {
    @Override
    public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
        return record.timestamp() >= 0 ? record.timestamp() : Math.max(0, partitionTime);
    }
}
