package dev.millrace.topology.ingress;

import dev.millrace.schemas.rollout.SampleName;
import dev.millrace.topology.state.Observation;
import org.apache.kafka.streams.processor.api.Record;

/** A rollout, or what belongs to one, that was read, decoded and held to its claims. */
public sealed interface Arrival extends Observation permits RolloutArrival, PartnerArrival {

    /** What it is. */
    JoinSide kind();

    /** Which sample it is about. */
    SampleName name();

    /** The record as it came. Decoded vectors are views of its value, so keeping both costs nothing. */
    Record<byte[], byte[]> raw();

    /** The ordinal of its kind. */
    @Override
    default int input() {
        return kind().ordinal();
    }

    /** When it was written, Unix milliseconds. */
    default long timestampMs() {
        return raw().timestamp();
    }

    /** Bytes of heap it keeps, nearly. */
    default long bytes() {
        return raw().value().length + OBJECTS_BYTES;
    }

    /** Bytes of a decoded record in addition to its vectors: objects, strings, spans. */
    long OBJECTS_BYTES = 1024;
}
