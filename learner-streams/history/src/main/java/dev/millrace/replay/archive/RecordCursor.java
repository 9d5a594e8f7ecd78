package dev.millrace.replay.archive;

import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Reads records of one partition one after the other, holding a few at a time. Confined to one thread. */
public interface RecordCursor extends AutoCloseable {

    /** The next record; empty at the end. */
    Optional<ConsumerRecord<byte[], byte[]>> next();

    @Override
    void close();

    /** A cursor over files, which goes to another place for less than it costs to be opened. */
    public interface SeekingCursor extends RecordCursor {

        /** Goes to the first record at this offset or behind it; back as well as on. */
        void seek(long offset);
    }
}
