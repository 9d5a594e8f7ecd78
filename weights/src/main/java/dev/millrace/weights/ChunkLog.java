package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;

/** Where the records of chunks lie: a topic, or files that a topic was exported to. */
public interface ChunkLog {

    /** Takes the records of a stretch of the log. */
    @FunctionalInterface
    interface Taker {
        /** @param value as it lies there; not to be written */
        void take(String topic, int partition, long offset, byte[] value);
    }

    /**
     * Hands on, in order, every record that is between the first and the last offset of a location.
     *
     * @param manifest of the version whose chunks they are
     * @throws VersionUnavailableException if the stretch is no longer there, or cannot be read
     */
    void read(PolicyVersion manifest, TensorLocation location, Taker taker);
}
