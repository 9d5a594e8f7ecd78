package dev.millrace.view.index;

import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;

/** Decodes the records of one run. What does not decode or is of another run is passed over: the run's own roles have refused it. Owned by one thread. */
final class OwnRecords {
    private final String runId;
    private final SchemaRegistry registry;
    private final Map<Class<?>, Deserializer<?>> deserializers = new HashMap<>();

    OwnRecords(String runId, SchemaRegistry registry) {
        this.runId = runId;
        this.registry = registry;
    }

    /** @param of the run that a record says it is of */
    <T extends SpecificRecord> Optional<T> decoded(
            ConsumerRecord<byte[], byte[]> record, Class<T> type, Function<T, String> of) {
        Deserializer<?> deserializer = deserializers.computeIfAbsent(
                type, unseen -> AvroSerde.of(type, registry).deserializer());
        try {
            return Optional.ofNullable(type.cast(deserializer.deserialize(record.topic(), record.value())))
                    .filter(read -> of.apply(read).equals(runId));
        } catch (MalformedRecordException e) {
            return Optional.empty();
        }
    }
}
