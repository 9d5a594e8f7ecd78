package dev.millrace.replay.archive;

import java.time.Duration;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** Reads a partition with a consumer of its own, from one offset to another. */
final class LogCursor implements RecordCursor {
    private static final Duration POLL = Duration.ofMillis(200);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final TopicPartition partition;
    private final long end;
    private final Duration patience;
    private Iterator<ConsumerRecord<byte[], byte[]>> fetched = Collections.emptyIterator();

    /** @param consumer closed with the cursor */
    LogCursor(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long from, long end, Duration patience) {
        this.consumer = consumer;
        this.partition = partition;
        this.end = end;
        this.patience = patience;
        consumer.assign(List.of(partition));
        consumer.seek(partition, from);
    }

    @Override
    public Optional<ConsumerRecord<byte[], byte[]>> next() {
        long lastProgress = System.nanoTime();
        long position = -1;
        while (!fetched.hasNext()) {
            long reached = consumer.position(partition, patience);
            if (reached >= end) {
                return Optional.empty();
            }
            if (reached != position) {
                position = reached; // markers of transactions move it too
                lastProgress = System.nanoTime();
            } else if (System.nanoTime() - lastProgress > patience.toNanos()) {
                throw new ArchiveException("nothing came from " + partition + " at offset " + position + " for "
                        + patience.toSeconds() + " s; is the broker out of reach, or a transaction left open?");
            }
            fetched = consumer.poll(POLL).records(partition).iterator();
        }
        ConsumerRecord<byte[], byte[]> record = fetched.next();
        return record.offset() < end ? Optional.of(record) : Optional.empty();
    }

    @Override
    public void close() {
        consumer.close();
    }
}
