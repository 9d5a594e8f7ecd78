package dev.millrace.topology;

import java.time.Duration;
import java.util.Map;
import java.util.function.BiConsumer;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads on where a partition ends that has lost its end, as after a power loss or an unclean election.
 *
 * <p>The engine takes that for an offset that retention removed, and would read the partition again from its beginning: every rollout on
 * it would be dropped as a duplicate of itself.
 */
final class ShortenedLogConsumer extends KafkaConsumer<byte[], byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(ShortenedLogConsumer.class);

    ShortenedLogConsumer(Map<String, Object> config) {
        super(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override
    public ConsumerRecords<byte[], byte[]> poll(Duration timeout) {
        try {
            return super.poll(timeout);
        } catch (LogTruncationException e) {
            goOn(e, this::seek);
            return ConsumerRecords.empty();
        }
    }

    /**
     * Goes to where the partitions end now.
     *
     * @throws LogTruncationException the same where that is not known of each
     */
    static void goOn(LogTruncationException lost, BiConsumer<TopicPartition, OffsetAndMetadata> seek) {
        Map<TopicPartition, OffsetAndMetadata> ends = lost.divergentOffsets();
        if (!ends.keySet().containsAll(lost.partitions())) {
            throw lost;
        }
        ends.forEach((partition, end) -> {
            LOG.warn(
                    "{} has lost its end, from offset {} on, up to offset {} of what was read; it is read on from there",
                    partition,
                    end.offset(),
                    lost.offsetOutOfRangePartitions().get(partition));
            seek.accept(partition, end);
        });
    }
}
