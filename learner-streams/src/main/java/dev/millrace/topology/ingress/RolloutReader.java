package dev.millrace.topology.ingress;

import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.deadletter.RefusedException;
import org.apache.kafka.streams.processor.api.Record;

/** Reads rollouts. Thread-safe. */
public final class RolloutReader implements ArrivalReader {
    private final RecordDecoding<Rollout> decoding;
    private final RolloutCheck check;

    public RolloutReader(String topic, SchemaRegistry registry, RolloutCheck check) {
        this.decoding = new RecordDecoding<>(topic, AvroSerde.of(Rollout.class, registry).deserializer());
        this.check = check;
    }

    @Override
    public RolloutArrival read(Record<byte[], byte[]> raw, int partition, long offset) throws RefusedException {
        Rollout rollout = decoding.decode(raw.value());
        try {
            return new RolloutArrival(check.check(rollout, raw.key()), rollout, raw, offset);
        } catch (RefusedException e) {
            throw new RefusedException(e.refusal().about(rollout.getRunId(), rollout.getRolloutId()));
        }
    }
}
