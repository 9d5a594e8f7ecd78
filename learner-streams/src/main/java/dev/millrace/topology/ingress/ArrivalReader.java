package dev.millrace.topology.ingress;

import dev.millrace.topology.deadletter.RefusedException;
import org.apache.kafka.streams.processor.api.Record;

/** Reads the records of one topic: bytes to a checked record. The same code reads live records and records read again. */
public interface ArrivalReader {

    /**
     * @param raw as it came
     * @param partition where it came from
     * @param offset where it came from
     * @throws RefusedException if it is not what it claims to be
     */
    Arrival read(Record<byte[], byte[]> raw, int partition, long offset) throws RefusedException;
}
