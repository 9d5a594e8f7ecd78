package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;

/** Source of chunk records: a topic, or the files of its export. */
public interface ChunkLog {

    @FunctionalInterface
    interface Taker {
        /** @param value as stored; read-only */
        void take(String topic, int partition, long offset, byte[] value);
    }

    /**
     * Passes on, in order, every record between the first and the last offset of a location.
     *
     * @throws VersionUnavailableException if the range is deleted or cannot be read
     */
    void read(PolicyVersion manifest, TensorLocation location, Taker taker);
}
