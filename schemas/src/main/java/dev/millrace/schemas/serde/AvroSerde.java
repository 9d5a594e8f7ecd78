package dev.millrace.schemas.serde;

import dev.millrace.schemas.registry.SchemaRegistry;
import org.apache.avro.specific.SpecificRecord;
import org.apache.avro.util.ClassSecurityValidator;
import org.apache.kafka.common.serialization.Serde;

/**
 * Serde of one kind of record: the Confluent wire format under the subject {@code <topic>-value}.
 *
 * <p>Thread-safe, as are its serializer and deserializer, which are the same objects at every call. Null maps to null,
 * as tombstones require. The caller closes the registry.
 */
public final class AvroSerde<T extends SpecificRecord> implements Serde<T> {
    private final AvroRecordSerializer<T> serializer;
    private final AvroRecordDeserializer<T> deserializer;

    private AvroSerde(Class<T> type, SchemaRegistry registry) {
        TrustedRecords.trust();
        this.serializer = new AvroRecordSerializer<>(type, registry);
        this.deserializer = new AvroRecordDeserializer<>(type, registry);
    }

    public static <T extends SpecificRecord> AvroSerde<T> of(Class<T> type, SchemaRegistry registry) {
        return new AvroSerde<>(type, registry);
    }

    @Override
    public AvroRecordSerializer<T> serializer() {
        return serializer;
    }

    @Override
    public AvroRecordDeserializer<T> deserializer() {
        return deserializer;
    }

    /**
     * Lets Avro instantiate the generated records.
     *
     * <p>Avro instantiates only trusted classes, because a schema may come from anywhere. Adds the package of the
     * generated records to the trusted ones.
     */
    static final class TrustedRecords {
        private static final String PACKAGE = "dev.millrace.schemas";

        static {
            ClassSecurityValidator.setGlobal(ClassSecurityValidator.composite(
                    ClassSecurityValidator.getGlobal(), type -> PACKAGE.equals(type.getPackageName())));
        }

        private TrustedRecords() {}

        /** Has an effect once per JVM, when this class is loaded. */
        static void trust() {}
    }
}
