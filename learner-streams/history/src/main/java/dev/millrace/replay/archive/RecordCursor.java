package dev.millrace.replay.archive;

import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Reads records of one partition one after the other, holding a few at a time. Confined to one thread. */
public interface RecordCursor extends AutoCloseable {

    /** The next record; empty at the end. */
    Optional<ConsumerRecord<byte[], byte[]>> next();

    @Override
    void close();
}
