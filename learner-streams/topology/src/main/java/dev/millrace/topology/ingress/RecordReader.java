package dev.millrace.topology.ingress;

import dev.millrace.schemas.rollout.RefusedException;
import java.util.Optional;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Decodes the records of one topic. The same code reads live records and records that are read again. Thread-safe.
 *
 * @param <T> type of the decoded records
 */
public interface RecordReader<T> {

    /**
     * @param raw as it came
     * @param partition where it came from
     * @param offset where it came from
     * @return empty if the record is in order and asks for nothing, as a tombstone on a compacted topic does
     * @throws RefusedException if it is not what it claims to be
     */
    Optional<T> read(Record<byte[], byte[]> raw, int partition, long offset) throws RefusedException;

    /** A task begins to read live records with it; each call has a {@link #close()}. */
    default void open() {}

    /** A task has ended. */
    default void close() {}
}
