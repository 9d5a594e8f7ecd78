package dev.millrace.topology.ingress;

import dev.millrace.topology.journal.Observation;
import org.apache.kafka.streams.processor.api.Record;

/** A rollout or a score that was read, decoded and held to its claims. */
public sealed interface Arrival extends Observation permits RolloutArrival, ScoreArrival {

    /** Which sample it is about. */
    SampleName name();

    /** The record as it came. Decoded vectors are views of its value, so keeping both costs nothing. */
    Record<byte[], byte[]> raw();

    /** Its topic among the join's inputs: 0 for rollouts, 1 for scores. */
    @Override
    default int input() {
        return this instanceof RolloutArrival ? 0 : 1;
    }

    /** When it was written, Unix milliseconds. */
    default long timestampMs() {
        return raw().timestamp();
    }

    /** Bytes of heap it keeps, nearly. */
    default long bytes() {
        return raw().value().length + OBJECTS_BYTES;
    }

    /** What a decoded record takes beside its vectors: objects, strings, spans. */
    long OBJECTS_BYTES = 1024;
}
