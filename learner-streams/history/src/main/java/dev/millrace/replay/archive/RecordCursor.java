package dev.millrace.replay.archive;

import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;

public interface RecordCursor extends AutoCloseable {

    Optional<ConsumerRecord<byte[], byte[]>> next();

    @Override
    void close();

    /** A file cursor; seeking is cheaper than opening. */
    public interface SeekingCursor extends RecordCursor {

        void seek(long offset);
    }
}
