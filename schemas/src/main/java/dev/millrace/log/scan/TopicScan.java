package dev.millrace.log.scan;

import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;

/** Reads committed records of topics up to a cut. Owned by one thread. */
public interface TopicScan extends AutoCloseable {
    /**
     * A consistent cut, now.
     *
     * @param topics what is written last first; those that a run may lack and this one lacks are left out
     * @throws ScanException if another one does not exist
     */
    ConsistentCut cut(List<String> topics);

    /** First offset that the log keeps of each partition now. */
    Map<TopicPartition, Long> keptFrom(List<TopicPartition> partitions);

    /**
     * Where records of this time and later begin, as far as clocks agree: the first offset that was written then or after.
     *
     * @param timestampMs Unix milliseconds
     * @return within the cut; its end if there is none
     */
    Map<TopicPartition, Long> since(ConsistentCut cut, List<TopicPartition> partitions, long timestampMs);

    /**
     * Hands over committed records inside the cut, from these offsets on, until a partition's reader has enough. The partitions are read side by side,
     * each in order.
     *
     * @param reader returns false to skip the rest of the record's partition
     * @throws ScanException if no record arrived for too long before a partition's end was reached
     */
    void readWhile(Map<TopicPartition, Long> from, ConsistentCut cut, Predicate<ConsumerRecord<byte[], byte[]>> reader);

    /**
     * Hands over every committed record of a topic inside the cut.
     *
     * @throws ScanException as {@link #readWhile} does
     */
    default void read(String topic, ConsistentCut cut, Consumer<ConsumerRecord<byte[], byte[]>> reader) {
        Map<TopicPartition, Long> from = new HashMap<>();
        cut.partitions(topic)
                .forEach(partition -> from.put(partition, cut.of(partition).begin()));
        readWhile(from, cut, record -> {
            reader.accept(record);
            return true;
        });
    }

    /** The record at one place; empty if the log does not have it, or not any more. */
    default Optional<ConsumerRecord<byte[], byte[]>> at(ConsistentCut cut, TopicPartition partition, long offset) {
        if (!cut.has(partition) || !cut.of(partition).holds(offset)) {
            return Optional.empty();
        }
        AtomicReference<ConsumerRecord<byte[], byte[]>> found = new AtomicReference<>();
        readWhile(Map.of(partition, offset), cut, record -> {
            if (record.offset() == offset) {
                found.set(record);
            }
            return false;
        });
        return Optional.ofNullable(found.get());
    }

    /** What a record holds; empty for a tombstone, and for bytes that are not such a record. */
    static <T> Optional<T> readable(Deserializer<T> deserializer, ConsumerRecord<?, byte[]> record) {
        try {
            return Optional.ofNullable(deserializer.deserialize(record.topic(), record.value()));
        } catch (MalformedRecordException e) {
            return Optional.empty();
        }
    }

    /** Records handed over so far. */
    long records();

    /** Their keys and values, uncompressed. */
    long bytes();

    @Override
    void close();
}
