package dev.millrace.schemas.serde;

import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.UnknownSchemaException;
import dev.millrace.schemas.serde.MalformedRecordException.Flaw;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;
import org.apache.avro.SchemaCompatibility.SchemaPairCompatibility;
import org.apache.avro.io.DatumReader;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificDatumReader;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;

/**
 * Reads records of one kind, written in any version of its schema; get it from {@link AvroSerde}.
 *
 * <p>Byte vectors of a record are views of the input array, which must not be written afterwards.
 */
public final class AvroRecordDeserializer<T extends SpecificRecord> implements Deserializer<T> {
    private static final ThreadLocal<RecordDecoder> DECODER = ThreadLocal.withInitial(RecordDecoder::new);

    private final SpecificData model;
    private final Schema schema;
    private final SchemaRegistry registry;
    private final ConcurrentMap<Integer, DatumReader<T>> readers = new ConcurrentHashMap<>();

    AvroRecordDeserializer(Class<T> type, SchemaRegistry registry) {
        this.model = SpecificData.getForClass(type);
        this.schema = model.getSchema(type);
        this.registry = registry;
    }

    /**
     * The record in {@code data}; null if {@code data} is null.
     *
     * @throws MalformedRecordException if it is not such a record
     * @throws dev.millrace.schemas.registry.SchemaRegistryException if the registry cannot be asked
     */
    @Override
    public @Nullable T deserialize(String topic, byte @Nullable [] data) {
        if (data == null) {
            return null;
        }
        int id = schemaId(topic, data);
        DatumReader<T> reader = readers.get(id);
        if (reader == null) {
            reader = readerOf(topic, id);
            readers.put(id, reader);
        }
        RecordDecoder decoder = DECODER.get();
        decoder.begin(data, RecordEncoder.HEADER_BYTES);
        T record;
        int trailing;
        try {
            record = reader.read(null, decoder);
            trailing = decoder.remainingBytes();
        } catch (MalformedRecordException e) {
            throw malformed(topic, e.flaw(), e.getMessage(), e);
        } catch (EOFException e) {
            throw malformed(topic, Flaw.TRUNCATED, e.getMessage(), e);
        } catch (IOException | RuntimeException e) { // Avro throws no common exception type for invalid bytes
            throw malformed(topic, Flaw.INVALID_VALUE, e.getMessage(), e);
        } finally {
            decoder.end();
        }
        if (trailing > 0) {
            throw malformed(topic, Flaw.TRAILING_BYTES, trailing + " bytes follow the record", null);
        }
        return record;
    }

    private int schemaId(String topic, byte[] data) {
        if (data.length < RecordEncoder.HEADER_BYTES) {
            throw malformed(
                    topic,
                    Flaw.EMPTY,
                    data.length + " bytes are fewer than the " + RecordEncoder.HEADER_BYTES + " of the header",
                    null);
        }
        if (data[0] != RecordEncoder.MAGIC) {
            throw malformed(topic, Flaw.WRONG_MAGIC_BYTE, "the first byte is " + data[0] + " in place of 0", null);
        }
        return ByteBuffer.wrap(data).getInt(1);
    }

    private DatumReader<T> readerOf(String topic, int id) {
        Schema written;
        try {
            written = registry.byId(id);
        } catch (UnknownSchemaException e) {
            throw malformed(topic, Flaw.UNKNOWN_SCHEMA, e.getMessage(), e);
        }
        if (!written.getFullName().equals(schema.getFullName())) {
            throw malformed(topic, Flaw.OTHER_RECORD, "schema " + id + " is that of a " + written.getFullName(), null);
        }
        SchemaPairCompatibility compatibility = SchemaCompatibility.checkReaderWriterCompatibility(schema, written);
        if (compatibility.getType() != SchemaCompatibilityType.COMPATIBLE) {
            throw malformed(
                    topic,
                    Flaw.INCOMPATIBLE_SCHEMA,
                    "schema " + id + " is another version that cannot be read: "
                            + compatibility.getResult().getIncompatibilities(),
                    null);
        }
        return new SpecificDatumReader<>(written, schema, model);
    }

    private MalformedRecordException malformed(
            String topic, Flaw flaw, @Nullable String sentence, @Nullable Throwable cause) {
        String message = "not a " + schema.getName() + " (topic " + topic + "): " + sentence;
        return cause == null
                ? new MalformedRecordException(flaw, message)
                : new MalformedRecordException(flaw, message, cause);
    }
}
