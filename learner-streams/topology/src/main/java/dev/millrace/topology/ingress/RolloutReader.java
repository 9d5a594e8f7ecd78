package dev.millrace.topology.ingress;

import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.RolloutValidator;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.Optional;
import org.apache.kafka.streams.processor.api.Record;

/** Reads rollouts. */
public final class RolloutReader implements RecordReader<Arrival> {
    private final RecordDecoding<Rollout> decoding;
    private final RolloutValidator validator;

    public RolloutReader(String topic, SchemaRegistry registry, RolloutValidator validator) {
        this.decoding = new RecordDecoding<>(
                topic, AvroSerde.of(Rollout.class, registry).deserializer());
        this.validator = validator;
    }

    @Override
    public Optional<Arrival> read(Record<byte[], byte[]> raw, int partition, long offset) throws RefusedException {
        Rollout rollout = decoding.decode(raw.value());
        try {
            return Optional.of(new RolloutArrival(validator.validate(rollout, raw.key()), rollout, raw, offset));
        } catch (RefusedException e) {
            throw new RefusedException(
                    e.refusal().about(rollout.getRunId(), rollout.getEpoch(), rollout.getRolloutId()));
        }
    }
}
