package dev.millrace.log.scan;

import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads single records of a partition again, by offset.
 *
 * <p>The topology keeps what waits in memory and only where it lies in its changelog; this brings it back after a
 * restart, and what did not fit into memory. Confined to one thread.
 */
public interface RecordFetcher extends AutoCloseable {

    /**
     * The records at these offsets that the partition still holds, in order; those that it no longer holds are
     * missing from the answer.
     *
     * @param offsets ascending, at least one; cheapest when they lie close together
     * @throws RecordFetchException if the partition does not answer in time
     */
    List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets);

    @Override
    void close();
}
