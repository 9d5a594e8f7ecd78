package dev.millrace.replay.archive;

import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads a partition with a consumer of its own, from one offset to another. */
final class LogCursor implements RecordCursor {
    private final LogReader log;
    private final TopicPartition partition;
    private final long end;
    private final Duration patience;
    private final Deque<ConsumerRecord<byte[], byte[]>> fetched = new ArrayDeque<>();

    /** @param log closed with the cursor */
    LogCursor(LogReader log, TopicPartition partition, long from, long end, Duration patience) {
        this.log = log;
        this.partition = partition;
        this.end = end;
        this.patience = patience;
        log.from(partition, from);
    }

    @Override
    public Optional<ConsumerRecord<byte[], byte[]>> next() {
        if (fetched.isEmpty()
                && !log.readUntil(
                        () -> !fetched.isEmpty() || log.position(partition) >= end,
                        ReadLimit.withoutProgress(patience),
                        fetched::add)) {
            throw new ArchiveException("nothing came from " + partition + " at offset " + log.position(partition)
                    + " for " + patience.toSeconds() + " s; is the broker out of reach, or a transaction left open?");
        }
        return Optional.ofNullable(fetched.poll()).filter(record -> record.offset() < end);
    }

    @Override
    public void close() {
        log.close();
    }
}
