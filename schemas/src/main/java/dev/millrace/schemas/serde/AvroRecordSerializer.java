package dev.millrace.schemas.serde;

import dev.millrace.schemas.registry.SchemaRegistry;
import java.io.IOException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.io.DatumWriter;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificDatumWriter;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serializer;
import org.jspecify.annotations.Nullable;

/** Writes records of one kind; get it from {@link AvroSerde}. */
public final class AvroRecordSerializer<T extends SpecificRecord> implements Serializer<T> {
    /** One per thread, shared by all serializers. */
    private static final ThreadLocal<RecordEncoder> ENCODER = ThreadLocal.withInitial(RecordEncoder::new);

    private final Schema schema;
    private final DatumWriter<T> writer;
    private final SchemaRegistry registry;
    private final ConcurrentMap<String, Integer> idByTopic = new ConcurrentHashMap<>();

    AvroRecordSerializer(Class<T> type, SchemaRegistry registry) {
        SpecificData model = SpecificData.getForClass(type);
        this.schema = model.getSchema(type);
        this.writer = new SpecificDatumWriter<>(schema, model);
        this.registry = registry;
    }

    /**
     * Returns the record's bytes in a new array.
     *
     * @throws SerializationException if a required field is not set
     * @throws dev.millrace.schemas.registry.SchemaRegistryException if the schema has no id and cannot be registered
     */
    @Override
    public byte @Nullable [] serialize(String topic, @Nullable T data) {
        if (data == null) {
            return null;
        }
        Integer id = idByTopic.get(topic);
        if (id == null) { // not computeIfAbsent: other topics must not wait for a slow registry
            id = registry.idOf(topic + "-value", schema);
            idByTopic.put(topic, id);
        }
        RecordEncoder encoder = ENCODER.get();
        encoder.begin(id);
        try {
            writer.write(data, encoder);
            return encoder.toByteArray();
        } catch (IOException | AvroRuntimeException | NullPointerException | ClassCastException e) {
            throw new SerializationException(
                    "a " + schema.getName() + " for topic " + topic + " cannot be written: " + e.getMessage(), e);
        } finally {
            encoder.end();
        }
    }
}
